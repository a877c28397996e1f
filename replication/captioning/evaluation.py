"""Captions of a captioner, their scores, and the regions that it attends to."""

from collections.abc import Sequence

import pandas as pd
import torch
from tqdm import tqdm

from replication.captioning.batches import Regions, Vocabulary, labels_batch, regions_batch
from replication.captioning.model import Captioner
from replication.captioning.pictures import Picture
from replication.captioning.scores import caption_scores, cider


def describe(
    model: Captioner, vocabulary: Vocabulary, regions: Regions, images: Sequence[int], decoding: dict[str, int]
) -> list[list[str]]:
    """Describe each image by beam search.

    Parameters
    ----------
    regions : callable
        From an image's number to the features of its regions, ``[R, F]``.
    images : sequence of int
        Numbers of the images.
    decoding : dict
        ``beam``, ``longest`` (in words) and ``batch_size``.

    Returns
    -------
    list of lists of str
        The words of each caption.
    """
    captions, config = [], model.config
    for start in tqdm(range(0, len(images), decoding["batch_size"]), desc="describe", unit="batch", mininterval=5):
        batch_images = images[start : start + decoding["batch_size"]]
        batch = regions_batch(regions, batch_images, config.region_width, config.region_count)
        best = model.search(*(batch[name].to(model.device) for name in ("regions", "real")),
                            decoding["beam"], decoding["longest"])  # fmt: skip
        captions += [vocabulary.decode(row[1:]) for row in best.tolist()]
    return captions


def measured(pictures: Sequence[Picture], captions: Sequence[Sequence[str]]) -> pd.DataFrame:
    """Score captions against their pictures.

    Returns
    -------
    DataFrame
        A row per picture: ``image, caption``, its scores as in :func:`~replication.captioning.scores.caption_scores`, and
        ``cider_of_other``, the score of the previous picture's caption.
    """
    references = [picture.captions for picture in pictures]
    table = caption_scores(captions, references)
    table.insert(0, "image", [picture.image for picture in pictures])
    table.insert(1, "caption", [" ".join(words) for words in captions])
    table["cider_of_other"] = 100 * cider([*captions[-1:], *captions[:-1]], references)
    return table


@torch.no_grad()
def attended_regions(
    model: Captioner, vocabulary: Vocabulary, regions: Regions, picture: Picture, longest: int
) -> pd.DataFrame:
    """Measure the cross-attention of a picture's first caption, teacher-forced, as a mean over heads.

    Returns
    -------
    DataFrame
        A row per layer, word and region: ``image, layer, place, word, region, weight``; ``place`` is the word's position in the
        caption.
    """
    words, config = picture.captions[0][:longest], model.config
    batch = regions_batch(regions, [picture.image], config.region_width, config.region_count)
    labels = labels_batch([vocabulary.encode(words, longest)])
    inputs = {name: tensor.to(model.device) for name, tensor in (batch | {"labels": labels}).items()}
    cross_attentions = model.describe(**inputs, output_attentions=True).cross_attentions
    rows = [
        (picture.image, layer, place, word, region, weight)
        for layer, weights in enumerate(cross_attentions)
        # The query at a word's place is the one that predicts the word.
        for place, word in enumerate(words)
        for region, weight in enumerate(weights[0, :, place].mean(dim=0).tolist())
    ]
    return pd.DataFrame(rows, columns=["image", "layer", "place", "word", "region", "weight"])
