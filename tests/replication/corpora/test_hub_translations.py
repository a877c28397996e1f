"""Parallel corpora in the hub's own format, saved on disk, and the section of the configuration that names them."""

import pytest
from datasets import Dataset, DatasetDict, load_dataset

from replication.corpora import hub
from replication.corpora.hub import read_hub_translations
from replication.corpora.parallel import write_parallel
from replication.corpora.sources import read_parallel_splits

PAIRS = [("one", "un"), ("two words", "deux mots"), ("", "vide"), ("three", "trois"), ("a  gap", "un  trou")]


@pytest.fixture
def saved(tmp_path) -> str:
    rows = Dataset.from_dict({"translation": [{"en": en, "fr": fr} for en, fr in PAIRS]})
    splits = {"train": rows, "validation": rows.select([3]), "test": rows, "empty": rows.select([2])}
    DatasetDict(splits).save_to_disk(tmp_path / "saved")
    return str(tmp_path / "saved")


def test_pairs_with_an_empty_side_are_left_out_and_gaps_closed(saved):
    expected = {"en": ["one", "two words", "three", "a gap"], "fr": ["un", "deux mots", "trois", "un trou"]}
    assert read_hub_translations(saved, "train", ["en", "fr"]) == expected


@pytest.mark.parametrize(
    ("rows", "first"), [("test[1:2]", "two words"), ("test[3:]", "three"), ("test[:1]", "one"), ("valid", "three")]
)
def test_some_rows_of_a_split(saved, rows, first):
    assert read_hub_translations(saved, rows, ["en", "fr"])["en"][0] == first


@pytest.mark.parametrize(
    ("split", "languages", "message"),
    [
        ("dev", ["en", "fr"], "no split dev; it has train, validation, test, empty"),
        ("train", ["en", "de"], "no language de; it has en, fr"),
        ("test[3:9]", ["en", "fr"], "rows of split test must be within 0 to 5, got 3 to 9"),
        ("test[4:4]", ["en", "fr"], "got 4 to 4"),
        ("test[a:b]", ["en", "fr"], "must be a name or a slice"),
        ("empty", ["en", "fr"], "contains no sentence pair"),
    ],
)
def test_what_is_not_there_is_named(saved, split, languages, message):
    with pytest.raises(ValueError, match=message):
        read_hub_translations(saved, split, languages)


@pytest.fixture
def converted(tmp_path) -> str:
    """As the hub converts IWSLT/iwslt2017, para_crawl and others that are scripts."""
    for configuration, language in (("iwslt2017-en-fr", "fr"), ("iwslt2017-en-de", "de")):
        rows = [{"translation": {"en": en, language: f"{language} {other}"}} for en, other in PAIRS]
        for split, own in (("train", rows), ("validation", rows[3:4]), ("test", rows[:2])):
            path = tmp_path / "converted" / configuration / split / "0000.parquet"
            path.parent.mkdir(parents=True)
            Dataset.from_list(own).to_parquet(path)
    return str(tmp_path / "converted")


@pytest.mark.parametrize("language", ["fr", "de"])
def test_a_copy_of_what_the_hub_converted_is_read_by_its_configuration(converted, language):
    source = {
        "source": "hub",
        "name": converted,
        "configuration": f"iwslt2017-en-{language}",
        "names": {"valid": "validation"},
    }
    splits = read_parallel_splits(source, ["train", "valid", "test"], ["en", language])
    assert [len(splits[name]["en"]) for name in ("train", "valid", "test")] == [4, 1, 2]
    assert splits["valid"][language] == [f"{language} trois"]


def test_of_a_script_what_the_hub_converted_is_asked_for(converted, monkeypatch):
    asked = []

    def as_on_the_hub(name, configuration=None, data_dir=None, revision=None):
        asked.append((configuration, data_dir, revision))
        if revision is None:
            raise RuntimeError("Dataset scripts are no longer supported, but found iwslt2017.py")
        return load_dataset(converted, data_dir=data_dir)

    monkeypatch.setattr(hub, "load_dataset", as_on_the_hub)
    found = read_hub_translations("IWSLT/iwslt2017", "test", ["en", "fr"], "iwslt2017-en-fr")
    assert found["en"] == ["one", "two words"]
    assert asked == [("iwslt2017-en-fr", None, None), (None, "iwslt2017-en-fr", "refs/convert/parquet")]


def test_other_errors_of_the_hub_are_not_hidden(monkeypatch):
    def broken(name, configuration=None, **others):
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(hub, "load_dataset", broken)
    with pytest.raises(RuntimeError, match="the disk is full"):
        read_hub_translations("IWSLT/iwslt2017", "test", ["en", "fr"], "iwslt2017-en-fr")


def test_a_dataset_of_text_is_no_parallel_corpus(tmp_path):
    DatasetDict(train=Dataset.from_dict({"text": ["a"]})).save_to_disk(tmp_path / "saved")
    with pytest.raises(ValueError, match="no column translation; it has text"):
        read_hub_translations(str(tmp_path / "saved"), "train", ["en", "fr"])


def test_a_section_of_the_configuration_finds_the_hub(saved):
    section = {"source": "hub", "name": saved, "names": {"valid": "test[:1]"}}
    found = read_parallel_splits(section, ["train", "valid"], ["fr", "en"])
    assert found["valid"] == {"fr": ["un"], "en": ["one"]}
    assert len(found["train"]["en"]) == 4


def test_a_section_finds_a_folder_by_the_names_of_its_splits(tmp_path):
    write_parallel(tmp_path, "flickr", {"en": ["a"], "de": ["b"]})
    section = {"source": "folder", "path": str(tmp_path), "names": {"test": "flickr"}}
    assert read_parallel_splits(section, ["test"], ["en", "de"]) == {"test": {"en": ["a"], "de": ["b"]}}


@pytest.mark.parametrize("section", [{"source": "folder"}, {"source": "hub"}, {"source": "bible"}])
def test_a_section_without_its_key_is_an_error(section):
    with pytest.raises(ValueError, match=f"{section['source']!r} lacks a key"):
        read_parallel_splits(section, ["train"], ["en", "de"])


def test_an_unknown_source_is_named():
    with pytest.raises(ValueError, match="got 'ftp'"):
        read_parallel_splits({"source": "ftp"}, ["train"], ["en", "de"])


def test_a_missing_side_is_refused_with_its_row(tmp_path):
    rows = {"translation": [{"en": "a", "fr": "b"}, {"en": "a", "fr": None}]}
    DatasetDict({"train": Dataset.from_dict(rows)}).save_to_disk(tmp_path / "saved")
    with pytest.raises(ValueError, match="row 1: fr must be text, got null"):
        read_hub_translations(str(tmp_path / "saved"), "train", ["en", "fr"])
