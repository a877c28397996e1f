"""Options in a translator's header: fairseq imports and evaluates code that some of them name."""

import pytest
import torch

pytest.importorskip("replication.translation.fairseq")

from replication.files.storage import FormatError, write_tensors
from replication.translation.saving import FIXED, KIND, read_settings

SETTINGS = FIXED | {"encoder_layers": 1, "lr": 0.01, "attention_form": "Top-k OOW", "lr_scheduler": "polynomial_decay"}


def written(path, languages=("en", "de"), **changes):
    header = {"settings": SETTINGS | changes, "source": languages[0], "target": languages[1], "words": []}
    write_tensors(path, {"x": torch.zeros(1)}, kind=KIND, tied={}, **header)
    return path


def test_options_of_a_configuration_are_read(tmp_path):
    assert read_settings(written(tmp_path / "m.safetensors")) == ("en", "de", SETTINGS)


@pytest.mark.parametrize(
    "changes",
    [
        {"user-dir": "/tmp/evil"},
        {"user_dir": "/tmp/evil"},
        {"lr": "__import__('os').system('true')"},
        {"lr": ["__import__('os').system('true')"]},
        {"adam-betas": "__import__('os').system('true')"},
        {"dropout": "--user-dir=/tmp/evil"},
        {"tensorboard-logdir": "/tmp/evil"},
        {"task": "language_modeling"},
        {"encoder_layers": None},
    ],
)
def test_options_that_no_configuration_has_are_refused(tmp_path, changes):
    """fairseq imports a `user_dir`, and evaluates rates."""
    name = next(iter(changes))
    with pytest.raises(FormatError, match=rf"m\.safetensors: {name} must be an option of a translator's configuration"):
        read_settings(written(tmp_path / "m.safetensors", **changes))


@pytest.mark.parametrize("languages", [("../en", "de"), ("en", "/de"), ("en", None)])
def test_languages_that_would_become_paths_are_refused(tmp_path, languages):
    with pytest.raises(FormatError, match=r"m\.safetensors: files must be names in this folder"):
        read_settings(written(tmp_path / "m.safetensors", languages))
