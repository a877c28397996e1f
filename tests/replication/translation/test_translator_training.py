"""Training of translators: what is interrupted goes on, of the same training alone, and what does not fit is said."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import torch
from word_by_word import ARCHITECTURE, TRAINING

pytest.importorskip("replication.translation.fairseq")

from replication.corpora.parallel import write_parallel
from replication.files.notes import note
from replication.files.storage import read_tensors
from replication.translation.data import binarize
from replication.translation.lengths import left_out, lengths
from replication.translation.training import train


@pytest.mark.parametrize(
    "options",
    [{}, {"attention_form": "Top-k OOW", "attention_budget": 2}, {"attention_normalizer": "entmax_alpha"}],
    ids=str,
)
def test_training_that_was_killed_goes_on_where_it_stopped(data, tmp_path, options):
    """kill -9 in the middle of an epoch: the run after it continues from the last checkpoint, to the weights of a whole run.

    So do the models of attention forms and of normalisers.
    """
    settings = TRAINING | options | {"max_update": 60, "save_interval_updates": 5, "keep_interval_updates": 1}
    program = (
        "import sys; from pathlib import Path; from replication.translation.training import train;"
        f"train(Path({str(data / 'data')!r}), 'en', 'de', {ARCHITECTURE!r}, {settings!r}, 0, Path({str(tmp_path)!r}))"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    last = tmp_path / "checkpoints" / "checkpoint_last.pt"
    while not last.exists() and child.poll() is None:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not (tmp_path / "model.safetensors").exists()
    log = train(data / "data", "en", "de", ARCHITECTURE, settings, 0, tmp_path)
    assert (tmp_path / "model.safetensors").exists()
    assert "Loaded checkpoint" in (tmp_path / "checkpoints" / "log.txt").read_text()
    assert isinstance(log, pd.DataFrame)
    assert log["num_updates"].max() == 60
    train(data / "data", "en", "de", ARCHITECTURE, settings, 0, tmp_path / "whole")
    resumed, whole = (
        read_tensors(folder / "model.safetensors", kind="translator") for folder in (tmp_path, tmp_path / "whole")
    )
    for name, weight in whole.items():
        torch.testing.assert_close(resumed[name], weight, rtol=0, atol=1e-5)


def weights_after(data, folder, seed=0, **changes):
    """Train twenty updates, and return the weights and the largest number of updates in the log."""
    settings = TRAINING | {"max_update": 20, "save_interval_updates": 5, "keep_interval_updates": 1} | changes
    log = train(data, "en", "de", ARCHITECTURE, settings, seed, folder)
    return read_tensors(folder / "model.safetensors", kind="translator"), log["num_updates"].max()


@pytest.mark.parametrize(
    "changes", [{"lr": 0.02}, {"dropout": 0.1}, {"attention_normalizer": "entmax15"}, {"seed": 1}], ids=str
)
def test_checkpoints_of_another_training_are_not_resumed(data, tmp_path, changes):
    weights_after(data / "data", tmp_path / "again")
    again, updates = weights_after(data / "data", tmp_path / "again", **changes)
    fresh, _ = weights_after(data / "data", tmp_path / "fresh", **changes)
    assert updates == 20
    assert all(torch.equal(again[name], fresh[name]) for name in fresh)


def test_checkpoints_of_other_data_are_not_resumed(data, tmp_path):
    weights_after(data / "data", tmp_path / "again")
    fewer = {"en": ["alpha beta"] * 50, "de": ["eins zwei"] * 50}
    for split in ("train", "valid", "test"):
        write_parallel(tmp_path / "corpus", split, fewer)
    binarize(tmp_path / "corpus", "en", "de", ["train", "valid", "test"], "spaces", 40, tmp_path / "data", None)
    again, updates = weights_after(tmp_path / "data", tmp_path / "again")
    fresh, _ = weights_after(tmp_path / "data", tmp_path / "fresh")
    assert updates == 20
    assert all(torch.equal(again[name], fresh[name]) for name in fresh)


def test_nothing_is_trained_after_the_last_update(data, tmp_path):
    """A kill between the last checkpoint and the model: the run after it writes the model of the last update."""
    first, _ = weights_after(data / "data", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    again, updates = weights_after(data / "data", tmp_path)
    assert updates == 20
    assert all(torch.equal(again[name], first[name]) for name in first)


def test_a_kill_while_a_checkpoint_is_copied_leaves_the_one_before(data, tmp_path, monkeypatch):
    settings = TRAINING | {"max_update": 20, "save_interval_updates": 5, "keep_interval_updates": 1}
    copies = 0

    def half(source, target):
        nonlocal copies
        copies += 1
        content = Path(source).read_bytes()
        Path(target).write_bytes(content[: len(content) // 2] if copies == 3 else content)
        if copies == 3:
            raise KeyboardInterrupt
        return target

    monkeypatch.setattr("shutil.copyfile", half)
    with pytest.raises(KeyboardInterrupt):
        train(data / "data", "en", "de", ARCHITECTURE, settings, 0, tmp_path)
    assert copies == 3
    torch.load(tmp_path / "checkpoints" / "checkpoint_last.pt", weights_only=True)
    assert train(data / "data", "en", "de", ARCHITECTURE, settings, 0, tmp_path)["num_updates"].max() == 20


def test_pairs_that_are_too_long_are_counted_and_said(data, tmp_path, capsys):
    note.cache_clear()
    counts = [max(len(line.split()) for line in lines) + 1 for lines in zip(*(
        (data / f"data/pieces/train.{language}").read_text().splitlines() for language in ("en", "de")
    ), strict=True)]  # fmt: skip
    limit = sorted(counts)[len(counts) // 2]
    settings = TRAINING | {"max_tokens": limit, "max_update": 2}
    # A validation pair that was longer stopped the training.
    assert max(lengths(data / "data", "valid", ("en", "de"))) > limit
    train(data / "data", "en", "de", ARCHITECTURE, settings, 0, tmp_path)
    longer = sum(count > limit for count in counts)
    assert left_out(data / "data", ("en", "de"), settings) == {"train": longer, "valid": 0}
    assert f"note: {longer} train pairs are longer than max_tokens ({limit})" in capsys.readouterr().err


def test_a_limit_that_no_pair_fits_is_refused_before_training(data, tmp_path):
    with pytest.raises(
        ValueError, match=r"`max_tokens` must fit a train pair of .*: the limit is 2 tokens, and the shortest"
    ):
        train(data / "data", "en", "de", ARCHITECTURE, TRAINING | {"max_tokens": 2, "max_update": 2}, 0, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_half_precision_without_a_gpu_is_refused_before_training(data, tmp_path):
    with pytest.raises(ValueError, match="`fp16` must be false on a machine without a GPU"):
        train(data / "data", "en", "de", ARCHITECTURE, TRAINING | {"fp16": True, "max_update": 2}, 0, tmp_path)
    assert not list(tmp_path.iterdir())
