"""Every stage names what it needs and does not find, in one line, and explains itself."""

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import assert_one_line, configure, run
from typer.testing import CliRunner

from profiles import SECTIONS
from replication.stages import MODULE_OF, app

COMMANDS = sorted(function.replace("_", "-") for function in MODULE_OF)
# What each stage needs, in the order of its inputs, in a run of which nothing has been made.
PAIR = "translation/grc-en"
MISSING = {
    "tokenize": (("retrofit",), "retrofit/corpus/train.parquet"),
    "train-masked-lm": ((), "masked_lm/tokens/train.safetensors"),
    "extract": ((), "masked_lm/model"),
    "project": (("masked_lm",), "masked_lm/graphs/train/layer00.safetensors"),
    "cluster": ((PAIR,), f"{PAIR}/graphs/train/layer00.safetensors"),
    "sweep": ((PAIR,), f"{PAIR}/graphs/valid/layer00.safetensors"),
    "coreference": ((), "masked_lm/tokens/valid.safetensors"),
    "tags": ((), "masked_lm/tokens/valid.safetensors"),
    "passage": ((), "masked_lm/model"),
    "perplexity": ((), "masked_lm/model"),
    "replace": ((), "masked_lm/model"),
    "fit-blocks": ((), "masked_lm/graphs/train/layer00.safetensors"),
    "evaluate-blocks": ((), "masked_lm/model"),
    "time-blocks": ((), "masked_lm/model"),
    "binarize": ((PAIR,), f"{PAIR}/corpus/train.grc"),
    "train-translation": ((PAIR,), f"{PAIR}/data"),
    "train-forms": (("forms/sentences/grc-en",), "forms/sentences/grc-en/data"),
    "measure-forms": (("forms/sentences/grc-en",), "forms/sentences/grc-en/data"),
    "train-normalizers": ((), "normalizer_speed/data"),
    "normalizer-speed": ((), "normalizer_speed/data"),
    "extract-decoder": ((PAIR,), f"{PAIR}/model/model.safetensors"),
    "bleu": ((PAIR,), f"{PAIR}/model/model.safetensors"),
    "decode": ((PAIR,), f"{PAIR}/model/model.safetensors"),
    "attention-parts": (("patterns/text/toy",), "patterns/text/toy/text/train.txt"),
    "time-steps": (("patterns/text/toy",), "patterns/text/toy/text/train.txt"),
    "measure-characters": (("patterns/text/toy",), "patterns/text/toy/text/train.txt"),
    "character-baselines": (("patterns/text/toy",), "patterns/text/toy/text/train.txt"),
    "measure-captioners": ((), "captioning/pictures/test.jsonl"),
    "measure-rules": ((), "masked_lm/model"),
    "reuse": (("nowhere",), "nowhere/config.yaml"),
}
MISSING_WITH = {
    "train-characters": (("patterns/text/toy",), {"model": "dense", "seed": 0}, "patterns/text/toy/text/train.txt"),
    "train-captioner": ((), {"model": "softmax", "seed": 0}, "captioning/pictures/train.jsonl"),
    "sparsify": ((), {"recall": 0.5}, "masked_lm/model"),
    "ship": (("masked_lm/model",), {"code": "c"}, "masked_lm/model/model.safetensors"),
    "weights": (("masked_lm/model",), {"code": "c"}, "shipped/masked_lm/model/weights.safetensors"),
}
WITHOUT_CONFIGURATION = {
    "claims": (("nowhere",), {"output": "out"}),
    "printed": ((), {"published": "nowhere", "output": "out"}),
    "report": (("nowhere",), {"output": "out"}),
    "archive": ((), {"results": "r", "file": "nowhere", "output": "out"}),
    "replay": (("nowhere",), {"output": "out"}),
    "prune": (("nowhere",), {}),
    "draw": (("nowhere", "out"), {}),
    "keep": (("nowhere",), {}),
    "compare-weights": (("r",), {"checkpoints": "nowhere"}),
}
#: These make texts, or need none; texts that are missing are refused with the configuration.
NOTHING = {
    "init", "check", "store-predictor", "scaling", "factorised", "configuration", "corpus", "parallel-corpus", "characters",
    "pictures",
}  # fmt: skip


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Path:
    """A configuration of every section, of which nothing has been made."""
    folder = tmp_path_factory.mktemp("empty")
    configure(folder, checkpoints="shipped", **SECTIONS)
    return folder


@pytest.mark.parametrize("command", [*MISSING, *MISSING_WITH, *WITHOUT_CONFIGURATION])
def test_a_missing_file_is_named_in_one_line(empty, command):
    before = sorted(empty.rglob("*"))
    if command in MISSING:
        places, named = MISSING[command]
        result = run(empty, command, *places)
    elif command in MISSING_WITH:
        places, options, named = MISSING_WITH[command]
        result = run(empty, command, *places, **options)
    else:
        places, options = WITHOUT_CONFIGURATION[command]
        result, named = run(empty, command, *places, config=None, **options), "nowhere"
    assert_one_line(result, named)
    assert result.stderr.count("\n") == 1
    assert sorted(empty.rglob("*")) == before


def test_every_stage_is_tested_for_what_is_missing():
    assert MISSING.keys() | MISSING_WITH.keys() | WITHOUT_CONFIGURATION.keys() | NOTHING == set(COMMANDS)


@pytest.mark.parametrize(
    ("command", "place", "hint"),
    [
        ("sweep", "masked_ln", "did you mean masked_lm?"),
        ("sweep", "translation/en-grc", "did you mean translation/grc-en?"),
        ("corpus", "masked_lm/unseen/brown", "this configuration has masked_lm, retrofit"),
        ("train-forms", "forms/sentence/grc-en", "did you mean forms/sentences/grc-en?"),
        ("measure-characters", "patterns/text/toys", "did you mean patterns/text/toy?"),
    ],
)
def test_an_unknown_place_is_named_with_the_nearest_one(empty, command, place, hint):
    result = run(empty, command, place)
    assert_one_line(result, f"{place}: unknown place")
    assert hint in result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_stage_explains_itself(command):
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_the_help_of_all_stages_does_not_wait_for_torch():
    script = "import sys; from replication.stages import app; app(['--help'], standalone_mode=False)"
    script += "; assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(command in done.stdout for command in COMMANDS)
