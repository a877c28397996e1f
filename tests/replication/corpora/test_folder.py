"""Folders of text files: what is read from plain text and CoNLL-U, gzipped or not, and what is refused by name."""

import gzip
import re
import unicodedata

import pytest

from replication.corpora.documents import Document, Sentence
from replication.corpora.folder import read_folder
from replication.files.notes import MARK, note

PLAIN = "The cat sat .\n\n  Two   spaces\there \n"
PLAIN_DOCUMENT = Document([Sentence("The cat sat .".split()), Sentence("Two spaces here".split())])


def conllu(*rows: str) -> str:
    """Lines of CoNLL-U from ``id form upos``; other lines as they are."""
    lines = []
    for row in rows:
        if row and row[0] != "#":
            number, form, upos = row.split()
            row = "\t".join([number, form, form.lower(), upos, "XPOS", *"_____"])
        lines.append(row)
    return "\n".join(lines) + "\n"


def write(path, text: str) -> None:
    (gzip.open if path.suffix == ".gz" else open)(path, "wt", encoding="utf-8").write(text)


@pytest.mark.parametrize("name", ["train.txt", "train.txt.gz"])
def test_plain_text_is_a_sentence_per_line_and_a_document_per_file(tmp_path, name):
    write(tmp_path / name, PLAIN)
    assert list(read_folder(tmp_path, "train")) == [PLAIN_DOCUMENT]


def test_a_split_is_every_file_that_begins_with_its_name_in_order(tmp_path):
    for name in ("valid-b.txt", "valid-a.txt.gz", "train.txt", "valid.md"):
        write(tmp_path / name, f"{name}\n")
    words = [sentence.words for document in read_folder(tmp_path, "valid") for sentence in document.sentences]
    assert words == [["valid-a.txt.gz"], ["valid-b.txt"]]


@pytest.mark.parametrize("name", ["train.conllu", "train.conllu.gz"])
def test_conllu_gives_words_and_universal_tags(tmp_path, name):
    text = conllu("# sent_id = 1", "1 Dogs NOUN", "2 bark VERB", "", "# text = Äh", "1 Äh INTJ", "")
    write(tmp_path / name, text)
    sentences = [Sentence(["Dogs", "bark"], ["NOUN", "VERB"]), Sentence(["Äh"], ["INTJ"])]
    assert list(read_folder(tmp_path, "train")) == [Document(sentences)]


def test_auxiliaries_are_told_from_verbs_by_the_tags_of_the_language(tmp_path):
    # As the Brown corpus has them: "He didn't have dogs", "must be" in a headline.
    rows = ["He PRON PPS", "didn't VERB DOD*", "have VERB HV", "dogs NOUN NNS", "must VERB MD-HL", "bark VERB VB"]
    columns = [row.split() for row in rows]
    lines = ["\t".join([str(n), form, form, *tags, *"_____"]) for n, (form, *tags) in enumerate(columns, start=1)]
    write(tmp_path / "train.conllu", "\n".join(lines) + "\n\n")
    (document,) = read_folder(tmp_path, "train", ["MD", "BE", "HV", "DO"])
    assert document.sentences[0].tags == ["PRON", "AUX", "AUX", "NOUN", "AUX", "VERB"]
    (untouched,) = read_folder(tmp_path, "train")
    assert untouched.sentences[0].tags == [upos for _, upos, _ in columns]
    with pytest.raises(ValueError, match=r"train.conllu: no tag in column 5 begins with MODAL or HAB"):
        list(read_folder(tmp_path, "train", ["MODAL", "HAB"]))


def test_multiword_ranges_and_empty_nodes_are_no_words(tmp_path):
    text = conllu("1-2 vámonos _", "1 vamos VERB", "2 nos PRON", "2.1 fuimos VERB", "3 ! PUNCT", "")
    write(tmp_path / "train.conllu", text)
    (document,) = read_folder(tmp_path, "train")
    assert document.sentences == [Sentence(["vamos", "nos", "!"], ["VERB", "PRON", "PUNCT"])]


@pytest.mark.parametrize("row", ["2 ", " 2", "2\u00a0"])
def test_spaces_around_a_number_lose_no_word(tmp_path, row):
    text = conllu("1 a DET", "2 dog NOUN", "3 barks VERB", "").replace("\n2\t", f"\n{row}\t")
    write(tmp_path / "train.conllu", text.replace("NOUN\t", " NOUN \t"))
    (document,) = read_folder(tmp_path, "train")
    assert document.sentences == [Sentence(["a", "dog", "barks"], ["DET", "NOUN", "VERB"])]


@pytest.mark.parametrize(
    "row", ["x", "", "2a", "-", "1–2", "2)", "２", "²", "2,", "1.", "+2", "2.0.1", "1-", "2 3", "0x2"]
)
def test_a_row_that_is_no_word_range_or_node_is_refused(tmp_path, row):
    text = conllu("1 a DET", "2 dog NOUN", "").replace("\n2\t", f"\n{row}\t")
    write(tmp_path / "train.conllu", text)
    with pytest.raises(
        ValueError, match=rf"train\.conllu, line 2: column 1 must be a word's number, .* got {re.escape(repr(row))}"
    ):
        list(read_folder(tmp_path, "train"))


def test_newdoc_starts_a_document(tmp_path):
    text = conllu("# newdoc id = a", "1 a X", "", "1 b X", "", "# newdoc", "# newpar", "1 c X", "")
    write(tmp_path / "train.conllu", text)
    found = [[s.words for s in document.sentences] for document in read_folder(tmp_path, "train")]
    assert found == [[["a"], ["b"]], [["c"]]]


def test_a_document_ends_with_its_file(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / f"train-{name}.conllu", conllu(f"1 {name} X", ""))
    assert len(list(read_folder(tmp_path, "train"))) == 2


def test_the_last_sentence_needs_no_blank_line(tmp_path):
    write(tmp_path / "train.conllu", conllu("1 a X", "", "1 b X").rstrip("\n"))
    (document,) = read_folder(tmp_path, "train")
    assert [sentence.words for sentence in document.sentences] == [["a"], ["b"]]


def test_windows_line_ends_are_line_ends(tmp_path):
    (tmp_path / "train.conllu").write_bytes(conllu("1 a X", "", "1 b X", "").replace("\n", "\r\n").encode())
    (document,) = read_folder(tmp_path, "train")
    assert [sentence.words for sentence in document.sentences] == [["a"], ["b"]]


@pytest.mark.parametrize("columns", [9, 11])
def test_a_wrong_number_of_columns_names_file_and_line(tmp_path, columns):
    write(tmp_path / "train.conllu", conllu("# comment", "1 a X") + "\t".join("2" * columns) + "\n")
    with pytest.raises(ValueError, match=rf"train\.conllu, line 3: .* got {columns}"):
        list(read_folder(tmp_path, "train"))


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere: no such folder"):
        list(read_folder(tmp_path / "nowhere", "train"))


def test_a_split_without_files_is_named(tmp_path):
    write(tmp_path / "train.txt", PLAIN)
    write(tmp_path / "valid.csv", PLAIN)
    with pytest.raises(FileNotFoundError, match=r"no file named valid\*"):
        list(read_folder(tmp_path, "valid"))


@pytest.mark.parametrize("text", ["", "\n \n"])
@pytest.mark.parametrize("name", ["train.txt", "train.conllu", "train.txt.gz"])
def test_a_file_without_sentence_is_named_even_beside_others(tmp_path, name, text):
    beside = "train-0.conllu" if ".conllu" in name else "train-0.txt"
    write(tmp_path / beside, PLAIN if ".txt" in name else conllu("1 a X", ""))
    write(tmp_path / name, text)
    documents = read_folder(tmp_path, "train")
    next(documents)
    with pytest.raises(ValueError, match=f"{name}: contains no sentence"):
        next(documents)


@pytest.mark.parametrize(
    "names", [("train.conllu", "train.txt"), ("train-1.txt", "train-1.txt.gz"), ("train-a.txt", "train-b.conllu.gz")]
)
def test_the_same_text_twice_is_refused_with_both_names(tmp_path, names):
    for name in names:
        write(tmp_path / name, conllu("1 a X", "") if "conllu" in name else PLAIN)
    with pytest.raises(ValueError, match=f"has both {names[0]} and {names[1]}; remove one of them"):
        list(read_folder(tmp_path, "train"))


@pytest.mark.parametrize("name", ["dev.conllu", "en_ewt-ud-dev.conllu"])
def test_a_file_of_another_name_is_found_and_the_name_to_give_it(tmp_path, name):
    write(tmp_path / name, conllu("1 a X", ""))
    with pytest.raises(FileNotFoundError, match=f"no file named valid.*; rename {name} to valid.conllu"):
        list(read_folder(tmp_path, "valid"))


def test_words_without_tags_are_untagged(tmp_path):
    write(tmp_path / "train.conllu", conllu("1 a _", "2 b _", "", "1 c NOUN", "2 d _", ""))
    (document,) = read_folder(tmp_path, "train")
    assert document.sentences == [Sentence(["a", "b"]), Sentence(["c", "d"], ["NOUN", ""])]


def test_treebanks_without_their_words_are_refused(tmp_path):
    write(tmp_path / "train.conllu", conllu("1 a DET", "2 _ PUNCT", "", "1 _ NOUN", ""))
    with pytest.raises(ValueError, match=r"train\.conllu, line 4: must have a word in column 2, got '_'"):
        list(read_folder(tmp_path, "train"))
    write(tmp_path / "valid.conllu", conllu("1 _ _", ""))
    with pytest.raises(ValueError, match=r"valid\.conllu, line 1: must have a word in column 2"):
        list(read_folder(tmp_path, "valid"))


def test_an_empty_last_column_is_a_column(tmp_path):
    write(tmp_path / "train.conllu", conllu("1 a X", "").replace("_\n", "\n"))
    (document,) = read_folder(tmp_path, "train")
    assert document.sentences == [Sentence(["a"], ["X"])]


@pytest.mark.parametrize("character", ["\x01", "\x7f", "\x9d"])
def test_control_characters_are_refused_with_the_users_file_and_line(tmp_path, character):
    write(tmp_path / "train.txt", f"fine\n{character}\n")
    with pytest.raises(
        ValueError, match=rf"train\.txt, line 2: contains the control character U\+00{ord(character):02X}"
    ):
        list(read_folder(tmp_path, "train"))


def test_accents_are_composed_and_that_is_said_once(tmp_path, capsys):
    note.cache_clear()
    write(tmp_path / "train.txt", unicodedata.normalize("NFD", "Äpfel für alle\nGrüße\n"))
    (document,) = read_folder(tmp_path, "train")
    assert [sentence.words for sentence in document.sentences] == [["Äpfel", "für", "alle"], ["Grüße"]]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"{MARK}{tmp_path / 'train.txt'}: letters and accents")
