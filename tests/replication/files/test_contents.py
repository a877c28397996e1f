"""Files with parts of other names or shapes, behind checksums that are right: each is refused by name."""

import json

import pytest
import torch

from replication.char_lm.models import KIND as CHARACTERS
from replication.char_lm.models import build_model, load_model
from replication.corpora.tokens import KIND as TOKENS
from replication.corpora.tokens import read_tokens
from replication.files.contents import read_json
from replication.files.storage import FormatError, read_header, write_tensors
from replication.graphs import centroids, projections
from replication.graphs.shards import KIND as GRAPHS
from replication.graphs.shards import open_graphs

IDS = torch.ones(3, 4, dtype=torch.int32)
QUERIES = torch.zeros(3, 2, 5, 4)


def written(path, tensors, kind, **header):
    write_tensors(path / "x.safetensors", tensors, kind=kind, **header)
    return path / "x.safetensors"


@pytest.mark.parametrize(
    "tensors",
    [
        {"ids": IDS},
        {"input_ids": IDS[0]},
        {"input_ids": IDS[None]},
        {"input_ids": IDS[:0]},
        {"input_ids": IDS.float()},
        {"input_ids": IDS, "tags": IDS[:2].clone()},
        {"input_ids": IDS, "chains": IDS[0].clone()},
    ],
)
def test_tokens_of_another_form(tmp_path, tensors):
    with pytest.raises(FormatError, match=r"x\.safetensors: (must contain input_ids, got ids|\w+ must have)"):
        read_tokens(written(tmp_path, tensors, TOKENS))


@pytest.mark.parametrize(
    "changes",
    [
        {"q": QUERIES[0], "k": QUERIES[0]},
        {"lengths": IDS[:, :1]},
        {"lengths": torch.tensor([5, 5])},
        {"lengths": torch.tensor([5, 5, 6])},
        {"lengths": torch.tensor([5, 5, 0])},
        {"lengths": torch.tensor([5.0, 5.0, 5.0])},
        {"sequence": torch.tensor([1, 2])},
    ],
)
def test_graphs_of_another_form(tmp_path, changes):
    tensors = {"q": QUERIES, "k": QUERIES + 1, "lengths": torch.tensor([5, 4, 3]), "sequence": torch.arange(3)}
    with open_graphs(written(tmp_path, tensors, GRAPHS, causal=False, layer=0, normalizer={"alpha": 1.5})) as graphs:
        assert len(graphs) == 3
    path = written(
        tmp_path,
        {name: x.clone() for name, x in (tensors | changes).items()},
        GRAPHS,
        causal=False,
        layer=0,
        normalizer={"alpha": 1.5},
    )
    with pytest.raises(FormatError, match=r"x\.safetensors: `[\w` ]+ must"), open_graphs(path):
        pass


def test_graphs_that_do_not_say_whether_they_are_causal(tmp_path):
    tensors = {"q": QUERIES, "k": QUERIES + 1, "lengths": torch.tensor([5, 4, 3]), "sequence": torch.arange(3)}
    with (
        pytest.raises(FormatError, match=r"x\.safetensors: must contain causal, got kind, "),
        open_graphs(written(tmp_path, tensors, GRAPHS)),
    ):
        pass


@pytest.mark.parametrize(
    "tensors",
    [
        {"weight": torch.zeros(2, 4, 3)},
        {"weight": torch.zeros(4, 3), "bias": torch.zeros(2, 3)},
        {"weight": torch.zeros(2, 4, 3), "bias": torch.zeros(2, 4)},
    ],
)
def test_projections_of_another_form(tmp_path, tensors):
    with pytest.raises(FormatError, match=r"x\.safetensors: (must contain bias|weight must have|bias must fit)"):
        projections.load(written(tmp_path, tensors, projections.KIND))


def test_centroids_of_another_form(tmp_path):
    path = written(tmp_path, {"clusters=2": torch.zeros(2, 3)}, centroids.KIND)
    with pytest.raises(FormatError, match=r"x\.safetensors: clusters=2 must have 3 axes with values, got \[2, 3\]"):
        centroids.load(path)


def test_a_model_whose_weights_do_not_fit_its_settings(tmp_path):
    sizes = {"layers": 1, "dimension": 8, "heads": 2, "inner": 8, "dropout": 0.0}
    settings = sizes | {"architecture": "transformer_xl", "memory_length": 8}
    state = build_model(settings, 4, seed=0).state_dict()
    header = {"settings": settings, "symbols": [97, 98, 99]}
    load_model(written(tmp_path, state, CHARACTERS, **header))
    for changed in (header | {"symbols": [97]}, header | {"settings": settings | {"layers": 2}}):
        with pytest.raises(FormatError, match=r"x\.safetensors: weights do not fit the model's settings"):
            load_model(written(tmp_path, state, CHARACTERS, **changed))
    with pytest.raises(FormatError, match=r"x\.safetensors: must contain symbols, got kind, "):
        load_model(written(tmp_path, state, CHARACTERS, settings=settings))


@pytest.mark.parametrize(
    ("text", "message"), [("[1]", "must contain an object"), ("{", "is damaged"), ("{}", "got nothing")]
)
def test_json_of_another_form(tmp_path, text, message):
    (tmp_path / "training.json").write_text(text)
    with pytest.raises(FormatError, match=rf"training\.json: .*{message}"):
        assert read_json(tmp_path / "training.json")["recipe"]


@pytest.mark.parametrize("header", ["{", "[]", "3"])
def test_a_header_that_is_no_object(tmp_path, header):
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(1)}, tmp_path / "x.safetensors", {"header": header})
    with pytest.raises(FormatError, match=r"x\.safetensors: (is damaged|must contain an object)"):
        read_header(tmp_path / "x.safetensors", kind="x")


def test_a_part_that_is_there_is_read(tmp_path):
    (tmp_path / "training.json").write_text(json.dumps({"seed": 3}))
    assert read_json(tmp_path / "training.json") == {"seed": 3}
