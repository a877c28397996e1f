"""Captions as word ids, and captions and image regions as padded batches."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset

from replication.captioning.pictures import Picture

PAD, BEGIN, END, UNKNOWN = range(4)
_MARKS = ("<pad>", "<s>", "</s>", "<unk>")
#: Label of padding, as in PyTorch's ``cross_entropy``.
IGNORED = -100
#: From an image's number to the features of its regions, float32 ``[R, F]``.
Regions = Callable[[int], np.ndarray]


@dataclass(frozen=True)
class Vocabulary:
    """Four marks, then words."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, captions: Iterable[Sequence[str]], least: int) -> "Vocabulary":
        """Return the words that occur at least ``least`` times in captions, the most frequent first.

        Raises
        ------
        ValueError
            If there is no such word.

        Examples
        --------
        >>> Vocabulary.of([["a", "red", "ball"], ["a", "ball"]], least=2).words
        ('a', 'ball')
        """
        counts = Counter(word for caption in captions for word in caption)
        words = sorted(
            (word for word, count in counts.items() if count >= least), key=lambda word: (-counts[word], word)
        )
        if not words:
            raise ValueError(f"`captions` must have a word that occurs at least {least} times, got none")
        return cls(tuple(words))

    def __len__(self) -> int:
        return len(_MARKS) + len(self.words)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words, start=len(_MARKS))}

    def encode(self, caption: Sequence[str], longest: int) -> list[int]:
        """Return the ids of at most ``longest`` words, and of the end mark."""
        return [self._ids.get(word, UNKNOWN) for word in caption[:longest]] + [END]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Return the words up to the end mark, without other marks.

        Examples
        --------
        >>> vocabulary = Vocabulary(("a", "ball"))
        >>> vocabulary.decode([BEGIN, 4, 5, END, 4])
        ['a', 'ball']
        """
        words = []
        for number in numbers:
            if number == END:
                break
            if number >= len(_MARKS):
                words.append(self.words[number - len(_MARKS)])
        return words


class Captions(Dataset):
    """Every caption of every image, as pairs (image, word ids)."""

    def __init__(self, pictures: Sequence[Picture], vocabulary: Vocabulary, longest: int):
        self.items = [
            (picture.image, vocabulary.encode(words, longest)) for picture in pictures for words in picture.captions
        ]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[int, list[int]]:
        return self.items[index]


def regions_batch(regions: Regions, images: Sequence[int], width: int, most: int) -> dict[str, Tensor]:
    """Return the regions of images as a padded batch.

    Parameters
    ----------
    regions : callable
        From an image's number to its features.
    images : sequence of int
        Numbers of the images.
    width : int
        Features that each region must have.
    most : int
        Regions that an image may have.

    Returns
    -------
    dict
        ``regions [B, R, F]``, padded with zeros, and ``real``, Bool ``[B, R]``, False for padding.

    Raises
    ------
    ValueError
        If an image has features of another width, or too many regions.
    """
    features = [torch.from_numpy(regions(image)) for image in images]
    for image, image_features in zip(images, features, strict=True):
        if image_features.shape[1] != width:
            raise ValueError(f"image {image}: features must have width {width}, got {image_features.shape[1]}")
        if len(image_features) > most:
            raise ValueError(f"image {image}: must have at most {most} regions, got {len(image_features)}")
    counts = torch.tensor([len(image_features) for image_features in features])
    padded = pad_sequence(features, batch_first=True)
    return {"regions": padded, "real": torch.arange(padded.shape[1]) < counts[:, None]}


def labels_batch(captions: Sequence[Sequence[int]]) -> Tensor:
    """Return the word ids of captions as ``[B, T]``, padded with :data:`IGNORED`."""
    return pad_sequence([torch.tensor(caption) for caption in captions], batch_first=True, padding_value=IGNORED)
