"""Contrasts of pronouns by hand and by a loop, and their probabilities against fairseq's own scorer, one pair at a time."""

import shutil

import pandas as pd
import pytest
import torch
from command_line import assert_one_line, configure, run, succeed

pytest.importorskip("replication.translation.fairseq")
from fairseq.sequence_scorer import SequenceScorer

from profiles import FORMS
from replication.corpora.parallel import write_parallel
from replication.corpora.sources import read_block_sentences
from replication.corpora.subwords import load_codes
from replication.translation import pronouns
from replication.translation.data import CODES, binarize
from replication.translation.forms import form_options
from replication.translation.model import load_translator
from replication.translation.pronouns import Contrast, contrasts_of, first_of_each, log_probabilities, measure
from replication.translation.training import train

ARCHITECTURE = {
    f"{side}_{key}": value
    for side in ("encoder", "decoder")
    for key, value in {"layers": 1, "embed_dim": 16, "ffn_embed_dim": 16, "attention_heads": 2}.items()
}
TRAINING = {"lr": 0.01, "warmup_updates": 5, "max_tokens": 1000, "dropout": 0.0, "max_update": 12}
GRAMMAR = {"source": "grammar", "sentences": {"train": 150, "valid": 20, "test": 60}, "seed": 5}
SPLITS, PAIR, BLOCK_WORDS = ["train", "valid", "test"], ["fr", "en"], 60
PLACE, CELL = "forms/documents/fr-en", "top-k-oow_k4_seed0"
SECTION = FORMS["sentences"] | {
    "corpus": {"fr-en": GRAMMAR},
    "block_words": BLOCK_WORDS,
    "merges": 60,
    "architecture": ARCHITECTURE,
    "training": TRAINING,
    "runs": [{"forms": ["Top-k OOW", "Window"], "budgets": [4], "seeds": [0]}],
}


@pytest.fixture(scope="module")
def blocks():
    return read_block_sentences(GRAMMAR, SPLITS, PAIR, BLOCK_WORDS)


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    """The folder of the run."""
    folder = tmp_path_factory.mktemp("pronouns")
    configure(folder, forms={"documents": SECTION})
    return folder


@pytest.fixture(scope="module")
def data(at, blocks):
    folder = at / "results/tiny" / PLACE
    for split, sides in blocks.items():
        write_parallel(folder / "corpus", split, {side: map(" ".join, text) for side, text in sides.items()})
    binarize(folder / "corpus", *PAIR, SPLITS, "spaces", 60, folder / "data", None)
    return folder / "data"


@pytest.fixture(scope="module")
def codes(data):
    return load_codes(data / CODES)


@pytest.fixture(scope="module")
def translator(data):
    train(data, *PAIR, ARCHITECTURE, TRAINING | form_options("Top-k OOW", 4), 0, data.parent / CELL)
    return load_translator(data.parent / CELL / "model.safetensors", data)


@pytest.fixture(scope="module")
def asked(blocks):
    return list(contrasts_of(blocks["test"]["fr"], blocks["test"]["en"]))


def test_an_example():
    source = [["Une ourse .", "Elle dort .", "Il la voit .", "« Il pleut » , dit -il ."], ["Il dort .", "La lune ."]]
    target = [
        ["A bear .", "She sleeps .", "He sees it .", '" It rains ! " he says .'],
        ["It sleeps .", "The moon is it ."],
    ]
    first, second = contrasts_of(source, target)
    assert first == Contrast("she", source[0][:2], target[0][:2], ["He sleeps .", "It sleeps ."])
    assert second == Contrast("it", source[1], target[1], ["The moon is he .", "The moon is she ."])
    assert first.pairs(context=True) == [
        ("Une ourse . Elle dort .", "A bear . She sleeps ."),
        ("Une ourse . Elle dort .", "A bear . He sleeps ."),
        ("Une ourse . Elle dort .", "A bear . It sleeps ."),
    ]
    assert first.pairs(context=False) == [("Elle dort .", f"{pronoun} sleeps .") for pronoun in ("She", "He", "It")]


def test_contrasts_of_the_corpus_are_what_a_loop_over_words_finds(blocks, asked):
    expected = []
    for fr, en in zip(blocks["test"]["fr"], blocks["test"]["en"], strict=True):
        for place in range(1, len(en)):
            words = en[place].split(" ")
            count = sum(words.count(word) for word in ("he", "she", "it", "He", "She", "It"))
            for upper in (False, True):
                forms = [word.title() if upper else word for word in ("he", "she", "it")]
                for own in forms:
                    if count == 1 and own in words:
                        texts = {
                            " ".join([other if word == own else word for word in words])
                            for other in forms
                            if other != own
                        }
                        expected.append((own.lower(), " ".join(fr[: place + 1]), " ".join(en[: place + 1]), texts))
    assert len(expected) > 10
    assert {own for own, *_ in expected} == {"he", "she", "it"}
    found = [(one.pronoun, *one.pairs(context=True)[0], set(one.variants)) for one in asked]
    assert found == expected


def test_sentences_that_are_not_aligned_are_refused():
    with pytest.raises(ValueError, match="must have equally many blocks, got 2 and 1"):
        list(contrasts_of([["a"], ["b"]], [["A"]]))
    with pytest.raises(ValueError, match="block 1: source and target must have equally many sentences, got 1 and 2"):
        list(contrasts_of([["a"], ["b"]], [["A"], ["B", "C"]]))


def alone(translator, codes, source, target):
    """Sum of fairseq's scores of a pair that no other is beside; its dictionary is looked up piece by piece."""
    tokens = [
        torch.tensor([[translator.dictionary.index(piece) for piece in codes.process_line(text).split()] + [2]])
        for text in (source, target)
    ]
    lengths = torch.tensor([tokens[0].shape[1]])
    # A decoder reads the target behind its end.
    net_input = {"src_tokens": tokens[0], "src_lengths": lengths, "prev_output_tokens": tokens[1].roll(1)}
    sample = {"net_input": net_input, "target": tokens[1]}
    ((hypothesis,),) = SequenceScorer(translator.dictionary).generate([translator.model], sample)
    return hypothesis["positional_scores"].double().sum().item()


@pytest.mark.parametrize("context", [True, False])
def test_probabilities_are_those_of_fairseqs_scorer(translator, codes, asked, context):
    pairs = [pair for contrast in asked[:6] for pair in contrast.pairs(context)]
    expected = [alone(translator, codes, *pair) for pair in pairs]
    assert len({round(score, 3) for score in expected}) == len(pairs)
    for batch_tokens in (1, 300, 10_000):
        found = log_probabilities(translator, pairs, codes, batch_tokens)
        assert found.tolist() == pytest.approx(expected, abs=1e-4)


def test_text_is_cut_as_the_data_of_the_translator(translator, codes, blocks):
    """The pairs of the test set, from its text and from its binary data."""
    pairs = [(" ".join(fr), " ".join(en)) for fr, en in zip(blocks["test"]["fr"], blocks["test"]["en"], strict=True)]
    found, dataset = log_probabilities(translator, pairs, codes, 1000), translator.dataset("test")
    assert len(dataset) == len(pairs)
    for sample in translator.batches(dataset, list(range(len(pairs))), 1000):
        with torch.no_grad():
            output = translator.model(**sample["net_input"])
        probabilities = translator.model.get_normalized_probs(output, log_probs=True)
        for row, number in enumerate(sample["id"].tolist()):
            real = [token for token in sample["target"][row].tolist() if token != translator.dictionary.pad()]
            expected = sum(probabilities[row, place, token].item() for place, token in enumerate(real))
            assert found[number].item() == pytest.approx(expected, abs=1e-3)


def test_a_model_is_right_where_the_reference_is_the_most_probable(translator, codes, asked):
    table = measure(translator, asked, codes, 2000).set_index(["context", "pronoun"])
    expected = {}
    for context in (True, False):
        for contrast in asked:
            reference, *others = (alone(translator, codes, *pair) for pair in contrast.pairs(context))
            count, right = expected.get((context, contrast.pronoun), (0, 0))
            expected[context, contrast.pronoun] = count + 1, right + all(reference > other for other in others)
    assert {key: (row["contrasts"], row["right"]) for key, row in table.iterrows()} == expected
    assert 0 < table["right"].sum() < table["contrasts"].sum()


def test_a_variant_as_probable_as_the_reference_is_not_beaten(translator, codes):
    """Pieces that the dictionary does not know are all the same."""
    unknown = Contrast("it", ["a", "b"], ["A", "Ж"], ["Ш", "Щ"])
    table = measure(translator, [unknown], codes, 100)
    assert table[["contrasts", "right"]].to_numpy().tolist() == [[1, 0], [1, 0]]


def test_the_first_contrasts_of_every_pronoun_are_taken():
    made = [Contrast(pronoun, [str(number)], [], []) for number, pronoun in enumerate("he he she he it she he".split())]
    assert [int(one.source[0]) for one in first_of_each(iter(made), 2)] == [0, 1, 2, 4, 5]
    assert first_of_each(made, 9) == made
    with pytest.raises(ValueError, match="`count` must be at least 1, got 0"):
        first_of_each(made, 0)
    with pytest.raises(ValueError, match="no sentence with context has exactly one of he, she, it"):
        first_of_each([], 9)


def test_the_stage_asks_about_the_test_set(at, data, translator, codes, asked, monkeypatch):
    monkeypatch.setattr(pronouns, "CONTRASTS", 4)
    succeed(at, "measure-pronouns", PLACE)
    expected = measure(translator, first_of_each(asked, 4), codes, 4000).assign(form="Top-k OOW", budget=4, seed=0)
    pd.testing.assert_frame_equal(pd.read_csv(data.parent / CELL / "pronouns.csv"), expected, check_dtype=False)
    assert [path.parent.name for path in data.parent.rglob("pronouns.csv")] == [CELL]


@pytest.mark.parametrize(
    ("pair", "changes"),
    [
        ("fr-de", {}),
        ("fr-en", {"corpus": {"fr-en": {"source": "folder", "path": "nowhere"}}}),
        ("fr-en", {"runs": [{"forms": ["Window"], "budgets": [4], "seeds": [0]}]}),
    ],
    ids=["into German", "without documents", "without the forms"],
)
def test_what_the_stage_cannot_measure_is_named(tmp_path, pair, changes):
    configure(tmp_path, forms={"documents": SECTION | {"corpus": {pair: GRAMMAR}} | changes})
    place = f"forms/documents/{pair}"
    assert_one_line(run(tmp_path, "measure-pronouns", place), f"{place}: pronouns are measured in documents")


def test_sentences_have_no_pronouns_to_measure(tmp_path):
    configure(tmp_path, forms=FORMS)
    result = run(tmp_path, "measure-pronouns", "forms/sentences/fr-en")
    assert_one_line(result, "forms/sentences/fr-en: unknown place")


def test_a_model_that_is_missing_is_named(data, tmp_path):
    here = configure(tmp_path, forms={"documents": SECTION}) / PLACE
    shutil.copytree(data, here / "data")
    assert_one_line(run(tmp_path, "measure-pronouns", PLACE), f"{CELL}/model.safetensors: no such file")
