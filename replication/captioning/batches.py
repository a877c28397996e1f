"""Images and captions as batches of tensors, padded."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset

from replication.captioning.pictures import Picture
from replication.captioning.vocabulary import Vocabulary

IGNORED = -100
Regions = Callable[[int], np.ndarray]


class Captions(Dataset):
    """Every caption of every image, ``(image, numbers of its words)``."""

    def __init__(self, pictures: Sequence[Picture], vocabulary: Vocabulary, longest: int):
        self.items = [
            (picture.image, vocabulary.encode(words, longest)) for picture in pictures for words in picture.captions
        ]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[int, list[int]]:
        return self.items[index]


def regions_batch(regions: Regions, images: Sequence[int], width: int, most: int) -> dict[str, Tensor]:
    """``regions [B, R, F]`` with zeros behind those of an image, and ``real [B, R]``, which are no padding.

    Raises ``ValueError`` for an image whose features have another width, or that has more regions than the model has places.
    """
    found = [torch.from_numpy(regions(image)) for image in images]
    for image, own in zip(images, found, strict=True):
        if own.shape[1] != width:
            raise ValueError(f"image {image}: features of width {own.shape[1]}, where {width} are expected")
        if len(own) > most:
            raise ValueError(f"image {image}: {len(own)} regions, where the model has places for {most}")
    counts = torch.tensor([len(own) for own in found])
    padded = pad_sequence(found, batch_first=True)
    return {"regions": padded, "real": torch.arange(padded.shape[1]) < counts[:, None]}


def labels_batch(captions: Sequence[Sequence[int]]) -> Tensor:
    """``[B, T]``, with -100 behind the end."""
    return pad_sequence([torch.tensor(caption) for caption in captions], batch_first=True, padding_value=IGNORED)
