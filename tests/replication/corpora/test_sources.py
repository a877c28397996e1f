"""A section of the configuration finds its reader."""

import pytest
from datasets import Dataset, DatasetDict

from replication.corpora.documents import Document, Sentence
from replication.corpora.sources import read_splits

HELD_OUT = [Document([Sentence(["held", "out"])])]


def test_folder(tmp_path):
    (tmp_path / "valid.txt").write_text("held out\n")
    splits = read_splits({"source": "folder", "path": str(tmp_path)}, ["valid"])
    assert {split: list(documents) for split, documents in splits.items()} == {"valid": HELD_OUT}


def test_hub(tmp_path):
    DatasetDict(validation=Dataset.from_dict({"text": ["held out"]})).save_to_disk(tmp_path / "saved")
    splits = read_splits({"source": "hub", "name": str(tmp_path / "saved")}, ["valid"])
    assert {split: list(documents) for split, documents in splits.items()} == {"valid": HELD_OUT}


@pytest.mark.parametrize("section", [{"source": "folder"}, {"source": "hub"}, {"source": "bible"}])
def test_a_source_without_its_key_is_an_error(section):
    with pytest.raises(ValueError, match=f"{section['source']!r} lacks a key"):
        read_splits(section, ["train"])


@pytest.mark.parametrize("section", [{"source": "ftp"}, {}, {"source": "Bible"}])
def test_an_unknown_source_is_named_with_those_that_are_known(section):
    with pytest.raises(ValueError, match=f"must be bible, folder or hub, got {section.get('source')!r}"):
        read_splits(section, ["train"])
