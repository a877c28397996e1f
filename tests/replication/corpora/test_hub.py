"""Datasets of raw text, saved on disk: rows are documents, lines are sentences."""

import pytest
from datasets import Dataset, DatasetDict

from replication.corpora.documents import Document, Sentence
from replication.corpora.hub import read_hub


@pytest.fixture
def saved(tmp_path) -> str:
    """Like WikiText: an empty row between documents, a validation split, another column; and a split without text."""
    rows = {"text": ["", " = A heading = \nOne  line .\n\nTwo .", "Three .\n"], "page": [0, 1, 2]}
    splits = {
        "train": Dataset.from_dict(rows),
        "validation": Dataset.from_dict({"text": ["held out"], "page": [7]}),
        "test": Dataset.from_dict({"text": ["", " \n"], "page": [8, 9]}),
    }
    DatasetDict(splits).save_to_disk(tmp_path / "saved")
    return str(tmp_path / "saved")


def test_rows_are_documents_and_lines_are_sentences(saved):
    first = Document([Sentence("= A heading =".split()), Sentence("One line .".split()), Sentence(["Two", "."])])
    assert list(read_hub(saved, "train")) == [first, Document([Sentence(["Three", "."])])]


@pytest.mark.parametrize("split", ["valid", "validation"])
def test_valid_also_finds_validation(saved, split):
    assert list(read_hub(saved, split)) == [Document([Sentence(["held", "out"])])]


def test_valid_itself_comes_first(tmp_path):
    splits = {name: Dataset.from_dict({"text": [name]}) for name in ("validation", "valid")}
    DatasetDict(splits).save_to_disk(tmp_path / "saved")
    assert list(read_hub(str(tmp_path / "saved"), "valid")) == [Document([Sentence(["valid"])])]


def test_a_missing_split_is_named_and_others_offered(saved):
    with pytest.raises(ValueError, match="no split dev; it has train, validation, test"):
        list(read_hub(saved, "dev"))


def test_a_missing_column_is_named_and_others_offered(saved):
    with pytest.raises(ValueError, match="no column body; it has text, page"):
        list(read_hub(saved, "train", column="body"))


def test_another_column_can_be_read(tmp_path):
    DatasetDict(train=Dataset.from_dict({"body": ["a b"]})).save_to_disk(tmp_path / "saved")
    assert list(read_hub(str(tmp_path / "saved"), "train", column="body")) == [Document([Sentence(["a", "b"])])]


def test_a_split_without_text_is_named(saved):
    with pytest.raises(ValueError, match="split test contains no text"):
        list(read_hub(saved, "test"))


@pytest.mark.parametrize(("value", "given"), [("null", "null"), ("42", "42")])
def test_words_that_csv_turns_into_null_or_numbers_are_refused_with_their_row(tmp_path, value, given):
    (tmp_path / "train.csv").write_text(f"text\n{value}\n" if value == "42" else f"text\nfine words\n{value}\n")
    row = 0 if value == "42" else 1
    with pytest.raises(ValueError, match=f"row {row}: text must be text, got {given}; "):
        list(read_hub(str(tmp_path), "train"))
