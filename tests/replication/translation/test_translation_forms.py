"""Translators trained with an attention form: their measures against loops, and their cross-attention word by word."""

import random
import shutil

import pandas as pd
import pytest
import torch
from command_line import assert_one_line, configure, list_files, run, succeed

pytest.importorskip("replication.translation.fairseq")
from profiles import FORMS
from replication.corpora.parallel import write_parallel
from replication.files.storage import read_header, read_tensors
from replication.results.bleu import COUNTS, corpus_bleu
from replication.translation.cross_attention import describe, word_map, word_maps
from replication.translation.data import binarize
from replication.translation.forms import attended, attending_fully, form_options, measure
from replication.translation.model import load_translator
from replication.translation.training import train

ARCHITECTURE = {
    f"{side}_{key}": value
    for side in ("encoder", "decoder")
    for key, value in {"layers": 2, "embed_dim": 16, "ffn_embed_dim": 16, "attention_heads": 2}.items()
}
TRAINING = {"lr": 0.01, "warmup_updates": 5, "max_tokens": 400, "dropout": 0.0, "max_update": 12}
WORDS = "alpha beta gamma delta epsilon zeta".split()
PAIRS = 12


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Words in capitals, in the same order."""
    folder = tmp_path_factory.mktemp("forms")
    rng = random.Random(1)
    for split, count in {"train": 150, "valid": 8, "test": PAIRS}.items():
        source = [rng.choices(WORDS, k=rng.randint(2, 11)) for _ in range(count)]
        write_parallel(
            folder / "corpus", split, {"en": map(" ".join, source), "xx": [" ".join(s).upper() for s in source]}
        )
    binarize(folder / "corpus", "en", "xx", ["train", "valid", "test"], "spaces", 12, folder / "data", None)
    return folder


@pytest.fixture(scope="module")
def translator(data):
    train(data / "data", "en", "xx", ARCHITECTURE, TRAINING | form_options("Top-k", 3), 0, data / "model")
    return load_translator(data / "model" / "model.safetensors", data / "data")


def lengths(translator, side):
    dataset = translator.dataset("test")
    return [len(dataset[i][side]) for i in range(len(dataset))]


def test_a_form_needs_a_budget_and_full_attention_none():
    assert form_options("Full", None) == {"attention_normalizer": "softmax"}
    assert form_options("Window", 4) == {"attention_form": "Window", "attention_budget": 4}
    assert form_options("Top-k self", 4) == form_options("Top-k", 4) | {"attention_cross_form": "Full"}
    assert form_options("Top-k OOW cross", 4) == form_options("Top-k OOW", 4) | {"attention_cross_form": "Top-k"}
    with pytest.raises(ValueError, match="`budget` must be at least 1 for the form Window"):
        form_options("Window", None)
    with pytest.raises(ValueError, match="k"):
        form_options("Window", 0)
    with pytest.raises(ValueError, match="Windows"):
        form_options("Windows", 4)


def test_attended_positions_are_counted_for_real_queries_only(translator):
    """Top-3 keeps 3 of n keys, or all of fewer; continuous scores do not tie."""
    source, target = lengths(translator, "source"), lengths(translator, "target")
    # The decoder reads </s> and the target without its end: as many rows as the target has pieces.
    decoder = [min(3, row + 1) for length in target for row in range(length)]
    cross = [min(3, s) for s, t in zip(source, target, strict=True) for _ in range(t)]
    encoder = [min(3, s) for s in source for _ in range(s)]
    expected = {"encoder": encoder, "decoder": decoder, "cross": cross}
    found = attended(translator, "test", PAIRS, 60)
    assert found == {place: pytest.approx(sum(rows) / len(rows)) for place, rows in expected.items()}
    with attending_fully(translator):
        full = attended(translator, "test", PAIRS, 60)
    assert full["encoder"] == pytest.approx(sum(s * s for s in source) / sum(source))
    assert full["decoder"] == pytest.approx(sum(t * (t + 1) / 2 for t in target) / sum(target))
    assert attended(translator, "test", PAIRS, 60) == found  # and the form is back


def test_only_the_first_pairs_are_read(translator):
    source, target = (lengths(translator, side)[:2] for side in ("source", "target"))
    cross = [min(3, s) for s, t in zip(source, target, strict=True) for _ in range(t)]
    assert attended(translator, "test", 2, 60)["cross"] == pytest.approx(sum(cross) / len(cross))
    assert sorted(number for number, _, _ in word_maps(translator, "test", 2, 60)) == [0, 1]
    table, (number, _) = describe(translator, "test", 2, None, 60)
    assert table["attended"].tolist() == [pytest.approx(sum(cross) / len(cross))] * 2
    assert number < 2


def test_measuring_names_what_it_counted(data, translator):
    references = (data / "corpus" / "test.xx").read_text().splitlines()
    measured, counts = measure(translator, "test", references, 2, 100)
    assert corpus_bleu(counts[COUNTS].to_numpy(float).sum(0)) == pytest.approx(measured["bleu"])
    assert measured["sentences"] == PAIRS
    assert 0 <= measured["bleu"] <= 100
    assert {"attended_encoder", "attended_decoder", "attended_cross", "signature", "beam"} <= measured.keys()


def test_pieces_become_words():
    weights = torch.rand(1, 2, 4, 5)
    mapped = word_map((["al@@", "pha", "beta", "gam@@"], ["X@@", "Y", "Z"]), weights)
    assert mapped.source == ["alpha", "beta", "gam", "</s>"]
    assert mapped.target == ["XY", "Z"]
    assert mapped.weights.shape == (1, 2, 2, 4)
    for row, piece in enumerate((0, 2)):
        of_piece = weights[0, 1, piece]
        expected = [of_piece[0] + of_piece[1], of_piece[2], of_piece[3], of_piece[4]]
        torch.testing.assert_close(mapped.weights[0, 1, row], torch.stack(expected))


def test_maps_do_not_depend_on_the_batch(translator):
    """One sentence at a time has no padding to go wrong."""
    alone = {number: one for number, one, _ in word_maps(translator, "test", PAIRS, 1)}
    assert sorted(alone) == list(range(PAIRS))
    for number, one, pieces in word_maps(translator, "test", PAIRS, 10_000):
        assert (one.source, one.target) == (alone[number].source, alone[number].target)
        torch.testing.assert_close(one.weights, alone[number].weights)
        torch.testing.assert_close(pieces.sum(-1), torch.ones(pieces.shape[:-1]))
        assert ((pieces > 0).sum(-1) <= 3).all()


def test_measures_of_cross_attention_follow_a_loop(translator):
    gold = [
        [(n, n) for n in range(len(one.target))]
        for _, one, _ in sorted(word_maps(translator, "test", PAIRS, 1), key=first)
    ]
    table, (_, shown) = describe(translator, "test", PAIRS, gold, 60)
    entropy, nonzero, end, mass, found = ([[], []] for _ in range(5))
    for _, one, pieces in word_maps(translator, "test", PAIRS, 60):
        for layer in range(2):
            for head in range(2):
                for row in pieces[layer, head]:
                    real = row[row > 0]
                    entropy[layer].append(-(real * real.log2()).sum().item())
                    nonzero[layer].append(len(real))
                    end[layer].append(row[-1].item())
            mean = one.weights[layer].mean(0)
            for word in range(len(one.target)):
                mass[layer].append(mean[word, word].item())
                found[layer].append(mean[word].argmax().item() == word)
    for layer in range(2):
        row = table.loc[layer]
        for name, values in {"entropy": entropy, "attended": nonzero, "on_the_end": end, "aligned_mass": mass,
                             "aligned_words": found}.items():  # fmt: skip
            assert row[name] == pytest.approx(sum(values[layer]) / len(values[layer]), abs=1e-5), name
    enough = [len(one.target) for _, one, _ in word_maps(translator, "test", PAIRS, 60) if len(one.target) >= 8]
    assert len(shown.target) == min(enough)
    assert shown.weights.shape == (2, 2, len(shown.target), len(shown.source))


def test_the_entropy_of_the_eight_largest_weights_leaves_the_others_out(translator):
    with attending_fully(translator):
        table, _ = describe(translator, "test", PAIRS, None, 60)
        rows = [row for _, _, pieces in word_maps(translator, "test", PAIRS, 60) for row in pieces[1].flatten(0, 1)]
    entropy = []
    for row in rows:
        kept = row.sort(descending=True).values[:8]
        kept = kept / kept.sum()
        entropy.append(-(kept * kept.log2()).sum().item())
    assert max(len(row) for row in rows) > 8
    assert table.loc[1, "entropy_of_8"] == pytest.approx(sum(entropy) / len(entropy), abs=1e-5)
    assert table.loc[1, "entropy_of_8"] < table.loc[1, "entropy"]


def first(item):
    return item[0]


def test_without_gold_alignment_the_score_is_missing_and_a_wrong_number_refused(translator):
    table, _ = describe(translator, "test", PAIRS, None, 60)
    assert table["aligned_words"].isna().all()
    assert table["entropy"].notna().all()
    with pytest.raises(ValueError, match=rf"must have one entry per pair of test \({PAIRS}\), got 1"):
        describe(translator, "test", PAIRS, [[]], 60)


def test_cross_attention_is_that_of_the_model(translator):
    """fairseq itself gives out the weights of the last layer, averaged over heads."""
    sample = next(translator.batches(translator.dataset("test"), [0], 100))
    _, extra = translator.model(**sample["net_input"])
    (_, _, pieces), *_ = [item for item in word_maps(translator, "test", PAIRS, 1) if item[0] == 0]
    torch.testing.assert_close(extra["attn"][0][0], pieces[-1].mean(0))


PLACE, TOP_K, FULL = "forms/sentences/grc-en", "top-k_k2_seed0", "full_seed0"
SECTION = FORMS["sentences"] | {
    "merges": 50,
    "architecture": ARCHITECTURE,
    "training": TRAINING | {"max_update": 2},
    "beam": 2,
    "runs": [{"forms": ["Full", "Top-k"], "budgets": [2], "seeds": [0]}],
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder in which every stage has run."""
    folder = tmp_path_factory.mktemp("stages") / "run"
    configure(folder, forms={"sentences": SECTION})
    for command in ("parallel-corpus", "binarize", "train-forms", "measure-forms"):
        succeed(folder, command, PLACE)
    return folder


@pytest.fixture(scope="module")
def output(whole):
    return whole / "results/tiny" / PLACE


def test_the_stages_from_the_text_to_the_tables(output):
    measured = {name: pd.read_csv(output / name / "measured.csv") for name in (TOP_K, FULL)}
    assert measured[TOP_K]["tested_with"].tolist() == ["Top-k", "Full"]
    assert (measured[TOP_K]["attended_cross"].iloc[0], measured[TOP_K]["budget"].iloc[0]) == (2, 2)
    assert measured[FULL]["tested_with"].tolist() == ["Full"]
    counts = pd.read_parquet(output / TOP_K / "sentences.parquet")
    for tested_with, of_test in counts.groupby("tested_with"):
        bleu = measured[TOP_K].set_index("tested_with").loc[tested_with, "bleu"]
        assert corpus_bleu(of_test[COUNTS].to_numpy(float).sum(0)) == pytest.approx(bleu)
    cross = pd.read_csv(output / TOP_K / "cross_attention.csv")
    assert cross["layer"].tolist() == [0, 1]
    assert cross["aligned_words"].between(0, 1).all()
    header = read_header(output / TOP_K / "map.safetensors", kind="cross-attention map")
    assert read_tensors(output / TOP_K / "map.safetensors", kind="cross-attention map")["weights"].shape[2:] == (
        len(header["target_words"]),
        len(header["source_words"]),
    )


def copy_without_models(output, folder, **changes):
    """Copy the text of a run, configure the copy, and return the folder of its models."""
    copied = configure(folder, forms={"sentences": SECTION | changes}) / PLACE
    for name in ("corpus", "data"):
        shutil.copytree(output / name, copied / name)
    list_files(copied)
    return copied


def test_a_job_of_several_models_trains_and_measures_each_as_if_it_were_alone(output, tmp_path):
    """What a job has trained before leaves no trace in the next model."""
    alone = copy_without_models(output, tmp_path)
    for command in ("train-forms", "measure-forms"):
        succeed(tmp_path, command, PLACE, cell=TOP_K)
    assert not (alone / FULL).exists()
    tables = [pd.read_csv(folder / TOP_K / "measured.csv") for folder in (output, alone)]
    pd.testing.assert_frame_equal(*tables, check_exact=True)
    models = [read_tensors(folder / TOP_K / "model.safetensors", kind="translator") for folder in (output, alone)]
    assert models[0].keys() == models[1].keys()
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])


def test_as_many_sentences_are_translated_as_the_configuration_says(output, tmp_path):
    few = copy_without_models(output, tmp_path, tested=4)
    shutil.copytree(output / FULL, few / FULL)
    list_files(few)
    succeed(tmp_path, "measure-forms", PLACE, cell=FULL)
    assert pd.read_csv(few / FULL / "measured.csv")["sentences"].tolist() == [4]
    assert pd.read_parquet(few / FULL / "sentences.parquet")["sentence"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("command", ["train-forms", "measure-forms"])
def test_an_unknown_cell_is_named_before_anything_is_trained_or_measured(output, tmp_path, command):
    folder = copy_without_models(output, tmp_path)
    before = sorted(folder.rglob("*"))
    result = run(tmp_path, command, PLACE, cell=[FULL, "top-k_k3_seed0"])
    assert_one_line(result, "top-k_k3_seed0: ")
    assert f"did you mean {TOP_K}?" in result.stderr
    assert sorted(folder.rglob("*")) == before
