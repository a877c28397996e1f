"""Masked language models with other normalisers and architectures: every stage uses the model's own edges, up to the tables."""

import entmax
import pandas as pd
import pytest
import tiny
import torch
import yaml
from command_line import configure, run, succeed

from profiles import MASKED_LM
from replication.config import ConfigurationError, parse
from replication.files.paths import ROOT
from replication.graphs.shards import open_graphs
from replication.masked_lm.model import load_entmax_model

COMMANDS = (
    ("corpus", "masked_lm"),
    ("tokenize", "masked_lm"),
    ("train-masked-lm",),
    ("extract",),
    ("project", "masked_lm"),
    ("cluster", "masked_lm"),
    ("sweep", "masked_lm"),
    ("replace",),
    ("fit-blocks",),
    ("evaluate-blocks",),
)
ENCODER = MASKED_LM["model"] | {"initializer_range": 2.0}
#: A model's keys in the configuration, the type of a pretrained encoder, and the normaliser's weights by the entmax package.
CASES = {
    "entmax-1.25": (
        ENCODER | {"normalizer": "entmax", "alpha": 1.25}, None, lambda x: entmax.entmax_bisect(x, 1.25, n_iter=100),
    ),
    "sparsemax": (ENCODER | {"normalizer": "sparsemax"}, None, entmax.sparsemax),
    "softmax": (ENCODER | {"normalizer": "softmax"}, None, lambda x: x.softmax(-1)),
    "DistilBERT": ({}, "distilbert", entmax.entmax15),
    "ELECTRA, adapters": ({"adapter_rank": 2, "attention_probs_dropout_prob": 0.0}, "electra", entmax.entmax15),
    "ModernBERT": ({}, "modernbert", entmax.entmax15),
}  # fmt: skip


@pytest.fixture(scope="module", params=CASES)
def measured(request, tmp_path_factory):
    """The results of a run, and the reference of its normaliser. A pretrained encoder has the vocabulary of another text."""
    model, kind, reference = CASES[request.param]
    folder = tmp_path_factory.mktemp("alpha")
    if kind:
        model = model | {"pretrained": str(tiny.write_encoder(kind, folder / "pretrained"))}
    results = configure(folder, masked_lm=MASKED_LM | {"model": model}) / "masked_lm"
    for command in COMMANDS:
        succeed(folder, *command)
    return results, reference


def test_gold_edges_are_those_of_the_models_own_normaliser(measured):
    results, reference = measured
    shares = []
    for layer in range(2):
        with open_graphs(results / f"graphs/valid/layer{layer:02}.safetensors") as graphs:
            batch = graphs.batch(0, len(graphs))
        scores = batch.q @ batch.k.mT / batch.q.shape[-1] ** 0.5
        expected = reference(scores.double().masked_fill(~batch.visible, -torch.inf)) > 0
        assert (batch.gold == expected).float().mean() > 0.999
        shares.append(batch.gold.float().mean().item())
    sweep = pd.read_parquet(results / "sweep/window.parquet")
    found = 1 - sweep.groupby("layer")["gold_sparsity"].mean()
    assert found.tolist() == pytest.approx(shares, abs=1e-5)


def test_the_loaded_model_has_its_normaliser_and_its_gold_graph_changes_nothing(measured):
    results, _ = measured
    _, control = load_entmax_model(results / "model")
    with open_graphs(results / "graphs/valid/layer00.safetensors") as graphs:
        assert graphs.normalizer.alpha == control.normalizer_of(0).alpha
    replaced = pd.read_csv(results / "replaced/seed1.csv").set_index("method")
    assert replaced.loc["gold graph", "nats"] == pytest.approx(replaced.loc["full", "nats"], abs=1e-5)
    blocks = pd.read_csv(results / "blocks/size2/evaluated/seed1.csv")
    own = blocks[blocks["method"] != "bigbird-softmax"]
    assert set(own["alpha"]) == {control.normalizer_of(0).alpha}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"normalizer": "entmax"}, "masked_lm.model.alpha: missing key; normalizer entmax needs it"),
        ({"alpha": 1.2}, "masked_lm.model.alpha: must be left out unless normalizer is entmax, got 1.2"),
        ({"normalizer": "entmax", "alpha": 3}, "masked_lm.model.alpha"),
    ],
)
def test_normalisers_that_contradict_themselves_are_refused(tmp_path, keys, message):
    configure(tmp_path, masked_lm=MASKED_LM | {"model": MASKED_LM["model"] | keys})
    result = run(tmp_path, "corpus", "masked_lm")
    assert result.exit_code == 1
    assert message in result.output


def test_a_sparsified_model_has_its_own_alpha():
    """The section on models that are made sparse cannot give the run's own model another normaliser."""
    profile = yaml.safe_load((ROOT / "config/demo.yaml").read_text())
    assert parse(profile).retrofit.alpha == 1.5
    profile["masked_lm"]["model"] |= {"normalizer": "entmax", "alpha": 1.25}
    with pytest.raises(ConfigurationError, match=r"retrofit\.alpha: must be 1\.25, masked_lm\.model's own, got 1\.5"):
        parse(profile)
