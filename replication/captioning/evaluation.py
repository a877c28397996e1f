"""What a captioner says of images, and which regions it attends to while it says so."""

from collections.abc import Sequence

import pandas as pd
import torch
from tqdm import tqdm

from replication.captioning.batches import Regions, labels_batch, regions_batch
from replication.captioning.model import Captioner
from replication.captioning.pictures import Picture
from replication.captioning.scores import caption_scores, cider
from replication.captioning.vocabulary import Vocabulary


def describe(
    model: Captioner, vocabulary: Vocabulary, regions: Regions, images: Sequence[int], decoding: dict[str, int]
) -> list[list[str]]:
    """A caption for each image, from beam search. ``decoding``: ``beam``, ``longest`` (words) and ``batch_size``."""
    said, config = [], model.config
    for start in tqdm(range(0, len(images), decoding["batch_size"]), desc="describe", unit="batch", mininterval=5):
        part = images[start : start + decoding["batch_size"]]
        batch = regions_batch(regions, part, config.region_width, config.region_count)
        best = model.search(*(batch[name].to(model.device) for name in ("regions", "real")),
                            decoding["beam"], decoding["longest"])  # fmt: skip
        said += [vocabulary.decode(row[1:]) for row in best.tolist()]
    return said


def measured(pictures: Sequence[Picture], said: Sequence[Sequence[str]]) -> pd.DataFrame:
    """A row per picture: ``image, caption``, its scores, and ``cider_of_other``, that of the caption of the picture before."""
    references = [picture.captions for picture in pictures]
    table = caption_scores(said, references)
    table.insert(0, "image", [picture.image for picture in pictures])
    table.insert(1, "caption", [" ".join(words) for words in said])
    table["cider_of_other"] = 100 * cider([*said[-1:], *said[:-1]], references)
    return table


@torch.no_grad()
def attended_regions(
    model: Captioner, vocabulary: Vocabulary, regions: Regions, picture: Picture, longest: int
) -> pd.DataFrame:
    """Cross-attention of a picture's first caption, teacher-forced, mean over heads.

    Rows ``image, layer, place`` (of the word in the caption)``, word, region, weight``.
    """
    words, config = picture.captions[0][:longest], model.config
    batch = regions_batch(regions, [picture.image], config.region_width, config.region_count)
    labels = labels_batch([vocabulary.encode(words, longest)])
    moved = {name: tensor.to(model.device) for name, tensor in (batch | {"labels": labels}).items()}
    found = model.describe(**moved, output_attentions=True).cross_attentions
    rows = [
        (picture.image, layer, place, word, region, weight)
        for layer, weights in enumerate(found)
        # The row of a word is the one that it is predicted from.
        for place, word in enumerate(words)
        for region, weight in enumerate(weights[0, :, place].mean(dim=0).tolist())
    ]
    return pd.DataFrame(rows, columns=["image", "layer", "place", "word", "region", "weight"])
