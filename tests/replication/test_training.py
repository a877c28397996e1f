"""Training with a learning rate that is far too large stops in one line; no table holds what is no number."""

import shutil
from importlib.util import find_spec

import pytest
from command_line import assert_one_line, configure, run, succeed

from profiles import FORMS, MASKED_LM, PATTERNS, TRANSLATION
from replication.training import check_loss

CHARACTERS, PAIR, SENTENCES = "patterns/text/toy", "translation/grc-en", "forms/sentences/grc-en"


def masked_lm(rate):
    steps = {"max_steps": 30, "logging_steps": 30, "save_steps": 30, "learning_rate": rate}
    return {"masked_lm": MASKED_LM | {"training": MASKED_LM["training"] | steps}}


def characters(rate):
    task = PATTERNS["text"]
    recipe = task["recipe"] | {"steps": 30, "log_every": 30, "learning_rate": rate}
    return {"patterns": {"text": task | {"recipe": recipe}}}


def translator(rate):
    training = TRANSLATION["training"] | {"max_update": 30, "log_interval": 5, "lr": rate}
    return {"translation": TRANSLATION | {"training": training}}


def forms(rate):
    section = FORMS["sentences"]
    training = section["training"] | {"max_update": 30, "log_interval": 5, "lr": rate}
    return {"forms": {"sentences": section | {"training": training}}}


STAGES = {
    masked_lm: ("train-masked-lm", (), {}),
    characters: ("train-characters", (CHARACTERS,), {"model": "dense", "seed": 0}),
    translator: ("train-translation", (PAIR,), {}),
    forms: ("train-forms", (SENTENCES,), {"cell": "full_seed0"}),
}
KEYS = {
    masked_lm: "masked_lm.training.learning_rate",
    characters: "patterns.text.recipe.learning_rate",
    translator: "translation.training.lr",
    forms: "forms.sentences.training.lr",
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Text for every kind of training."""
    folder = tmp_path_factory.mktemp("divergence") / "run"
    configure(folder, **{key: section for kind in STAGES for key, section in kind(1e-3).items()})
    succeed(folder, "corpus", "masked_lm")
    succeed(folder, "tokenize", "masked_lm")
    succeed(folder, "characters", CHARACTERS)
    for place in (PAIR, SENTENCES) if find_spec("fairseq") else ():
        succeed(folder, "parallel-corpus", place)
        succeed(folder, "binarize", place)
    return folder


@pytest.fixture
def folder(texts, tmp_path):
    """A run with texts, and without models."""
    return shutil.copytree(texts, tmp_path / "run")


def train(folder, kind, rate):
    if kind in (translator, forms):
        pytest.importorskip("replication.translation.fairseq")
    configure(folder, **kind(rate))
    command, places, options = STAGES[kind]
    return run(folder, command, *places, **options)


def assert_no_model(folder):
    assert not list(folder.rglob("model.safetensors"))
    assert not list(folder.rglob("training.json"))


@pytest.mark.parametrize("kind", STAGES, ids=lambda kind: kind.__name__)
def test_training_that_diverges_stops_in_one_line_and_leaves_no_model(folder, kind):
    done = train(folder, kind, 1e30)
    assert done.exit_code == 1, done.output
    assert isinstance(done.exception, SystemExit)
    # The progress bar of transformers has no end of line.
    message = done.stderr.rstrip("\n").rpartition("error: ")[2]
    assert message.startswith("training diverged: ")
    assert message.endswith("at a learning rate of 1e+30")
    assert "\n" not in message
    assert "Traceback" not in done.output
    assert_no_model(folder)


@pytest.mark.parametrize("kind", STAGES, ids=lambda kind: kind.__name__)
def test_an_infinite_rate_is_refused_by_its_key(folder, kind):
    assert_one_line(train(folder, kind, float("inf")), f"{KEYS[kind]}: must be a finite number")
    assert_no_model(folder)


@pytest.mark.parametrize("kind", [masked_lm, characters], ids=lambda kind: kind.__name__)
def test_the_same_training_at_a_sound_rate_ends_well(folder, kind):
    assert train(folder, kind, 1e-3).exit_code == 0


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), -float("inf")])
def test_a_loss_that_is_no_number_is_named_with_its_step(loss):
    with pytest.raises(ValueError, match=r"the loss of step 7 is -?(nan|inf), at a learning rate of 0\.5"):
        check_loss(loss, 7, 0.5)
    assert check_loss(1.5, 7, 0.5) == 1.5
