"""Scenes: what captions say is what is to be seen."""

import hashlib

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from replication.captioning.dice import Dice
from replication.captioning.scenes import (
    CAPTIONS,
    CELL,
    COLOURS,
    PATCH,
    SIDE,
    Figure,
    patches,
    picture_of,
    scene,
    scenes,
)


@given(st.integers(0, 10**6))
def test_every_scene_has_five_captions_of_known_words_and_no_marks(seed):
    picture, captions = scene(Dice(seed))
    assert picture.shape == (SIDE, SIDE, 3)
    assert len(captions) == CAPTIONS
    assert all(caption == caption.lower() and caption.replace(" ", "").isalpha() for caption in captions)


@given(st.integers(0, 10**6))
def test_colours_that_are_named_are_painted(seed):
    picture, captions = scene(Dice(seed))
    painted = len(np.unique(picture.reshape(-1, 3), axis=0)) - 1
    named = {word for caption in captions for word in caption.split()} & COLOURS.keys()
    assert painted == len(named)


@pytest.mark.parametrize(
    ("one", "other", "relation"),
    [((0, 0), (0, 2), "to the left of"), ((1, 2), (1, 0), "to the right of"), ((0, 1), (2, 0), "above"),
     ((2, 0), (1, 0), "below"), ((1, 1), (0, 0), "below")],
)  # fmt: skip
def test_relations_follow_the_longer_way(one, other, relation):
    first, second = (Figure("ball", "red", *at) for at in (one, other))
    assert first.beside(second) == relation


@given(st.integers(0, 10**6))
def test_the_first_form_says_where_the_pixels_are(seed):
    """The relation of two figures, from the middles of their own pixels; of one colour, those do not say whose they are."""
    picture, captions = scene(Dice(seed))
    first, second = captions[0].split()[1], captions[0].split()[-2]
    assume(all(captions[4].split().count(colour) == 1 for colour in (first, second)))
    middles = [np.argwhere((picture == painted(colour)).all(-1)).mean(axis=0) // CELL for colour in (first, second)]
    down, right = middles[0] - middles[1]
    across = "to the right of" if right > 0 else "to the left of"
    assert f" {across if abs(right) > abs(down) else 'below' if down > 0 else 'above'} " in captions[0]


def painted(colour: str) -> np.ndarray:
    return np.round(255 * np.array(COLOURS[colour])).astype(np.uint8)


def test_patches_are_squares_line_by_line():
    picture, _ = scene(Dice(3))
    regions = patches(picture)
    assert regions.shape == ((SIDE // PATCH) ** 2, 3 * PATCH**2)
    assert (regions[7].reshape(PATCH, PATCH, 3) == picture[PATCH : 2 * PATCH, PATCH : 2 * PATCH]).all()
    assert (picture_of(regions) == picture).all()


def test_a_split_does_not_depend_on_the_size_of_another():
    small, large = (scenes({"train": count, "test": 3}, seed=1) for count in (2, 9))
    assert [captions for _, captions in small["test"]] == [captions for _, captions in large["test"]]
    assert small["train"][1][1] == large["train"][1][1]


def test_scenes_are_those_that_models_were_trained_on():
    """Shipped models depend on every pixel and word."""
    digest = hashlib.sha256()
    for split, pictures in scenes({"train": 300, "test": 60}, seed=7).items():
        for picture, captions in pictures:
            digest.update(repr((split, picture.shape, captions)).encode() + picture.tobytes())
    assert digest.hexdigest() == "30329851c3b8d9f69dccad8a83602eb8cec02686042a341e8e1c6809b6fc3505"


def test_a_split_without_images_is_refused():
    with pytest.raises(ValueError, match="got 0 for test"):
        scenes({"train": 2, "test": 0}, seed=0)
