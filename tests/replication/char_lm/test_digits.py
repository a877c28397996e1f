"""Images as a text of pixels."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from replication.char_lm.corpus import DIGIT_RECORD, DIGIT_START, digits, read_corpus
from replication.char_lm.data import Alphabet, cut

COUNTS = {"train": 32, "valid": 8, "test": 16}


def test_every_image_is_one_of_scikit_learns_and_in_one_split_only():
    known = {image.astype(np.uint8).tobytes() for image in load_digits().images}
    splits = digits(COUNTS, seed=0)
    records = {
        name: [text[at : at + DIGIT_RECORD] for at in range(0, len(text), DIGIT_RECORD)]
        for name, text in splits.items()
    }
    assert {name: len(found) for name, found in records.items()} == COUNTS
    every = [record for found in records.values() for record in found]
    assert all(record[0] == DIGIT_START and record[1:] in known for record in every)
    assert len(set(every)) == len(every)


def test_the_seed_says_which():
    assert digits(COUNTS, seed=0) == digits(COUNTS, seed=0)
    assert digits(COUNTS, seed=0) != digits(COUNTS, seed=1)


def test_segments_of_a_record_hold_an_image_each():
    text = digits(COUNTS, seed=0)["train"]
    alphabet = Alphabet.of(text)
    (start,) = alphabet.encode(bytes([DIGIT_START]))
    for inputs, targets in cut(alphabet.encode(text), rows=8, length=DIGIT_RECORD).segments(DIGIT_RECORD):
        assert inputs.shape == (8, DIGIT_RECORD)
        assert (inputs[:, 0] == start).all()
        assert not (inputs[:, 1:] == start).any()
        assert (targets[:, :-2] == inputs[:, 1:-1]).all()  # of the very last pixel nothing follows


@pytest.mark.parametrize("images", [COUNTS | {"train": 1790}, COUNTS | {"valid": 0}])
def test_more_images_than_there_are_or_none_are_refused(images):
    with pytest.raises(ValueError, match="`images` must be at least 1 per split and at most 1797 in total"):
        read_corpus({"source": "digits", "images": images, "seed": 0})
