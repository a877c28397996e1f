"""Training: it learns what is to be seen, and goes on where it stopped."""

import json
import shutil

import numpy as np
import pytest
import torch

from replication.captioning.batches import Captions, Vocabulary
from replication.captioning.evaluation import attended_regions, describe, measured
from replication.captioning.model import build_model, load_model
from replication.captioning.pictures import Picture
from replication.captioning.training import CaptionTrainer, train

#: An image is two regions; the first says which word comes first, the second which comes next.
WORDS = ("ball", "box", "cat")
PICTURES = [Picture(3 * i + j, [[WORDS[i], WORDS[j]]] * 2) for i in range(3) for j in range(3)]
FEATURES = {one.image: np.stack([np.eye(3)[one.image // 3], np.eye(3)[one.image % 3]]).astype("f4") for one in PICTURES}
VOCABULARY = Vocabulary.of([WORDS], least=1)
SIZES = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
         "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "init_std": 0.2}  # fmt: skip
ARGUMENTS = {"per_device_train_batch_size": 6, "learning_rate": 0.01, "logging_steps": 5, "save_steps": 5}


def new(dropout: float = 0.0):
    sizes = {"region_count": 2, "region_width": 3, "longest": 2}
    return build_model(len(VOCABULARY), **sizes, top_k=1, seed=0, dropout=dropout, **SIZES)


def trained(folder, steps: int, dropout: float = 0.0):
    captions = Captions(PICTURES, VOCABULARY, longest=2)
    return train(new(dropout), captions, FEATURES.get, folder, seed=0, max_steps=steps, **ARGUMENTS)


def test_it_learns_to_say_what_is_to_be_seen(tmp_path):
    log = trained(tmp_path, steps=150)
    assert log[0]["loss"] > 1 > 0.1 > [entry["loss"] for entry in log if "loss" in entry][-1]
    model = load_model(tmp_path)
    said = describe(
        model, VOCABULARY, FEATURES.get, [one.image for one in PICTURES], {"beam": 2, "longest": 2, "batch_size": 4}
    )
    assert said == [one.captions[0] for one in PICTURES]
    table = measured(PICTURES, said)
    assert table["meteor"].min() > 90
    assert table["cider"].mean() > 2 * table["cider_of_other"].mean()


def test_attention_is_of_every_word_and_region(tmp_path):
    trained(tmp_path, steps=5)
    table = attended_regions(load_model(tmp_path), VOCABULARY, FEATURES.get, PICTURES[5], longest=2)
    assert table["word"].tolist() == ["box", "box", "cat", "cat"]
    assert table.groupby("place")["weight"].sum().tolist() == pytest.approx([1, 1])


def test_an_interrupted_training_goes_on_as_if_nothing_had_happened(tmp_path, monkeypatch):
    whole = trained(tmp_path / "whole", steps=10, dropout=0.2)
    steps = CaptionTrainer.training_step

    def killed(self, *args, **kwargs):
        if self.state.global_step == 7:
            raise KeyboardInterrupt
        return steps(self, *args, **kwargs)

    monkeypatch.setattr(CaptionTrainer, "training_step", killed)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "cut", steps=10, dropout=0.2)
    monkeypatch.undo()
    assert (tmp_path / "cut/checkpoints/checkpoint-5").is_dir()
    log = trained(tmp_path / "cut", steps=10, dropout=0.2)
    assert [entry["loss"] for entry in log if "loss" in entry] == [entry["loss"] for entry in whole if "loss" in entry]
    for name, weights in load_model(tmp_path / "whole").state_dict().items():
        assert torch.equal(weights, load_model(tmp_path / "cut").state_dict()[name]), name


def test_checkpoints_of_other_settings_are_not_gone_on_from(tmp_path):
    (tmp_path / "checkpoints/checkpoint-5").mkdir(parents=True)
    (tmp_path / "checkpoints/settings.json").write_text(json.dumps({"seed": 1}))
    trained(tmp_path, steps=5)
    assert {path.name for path in tmp_path.iterdir()} >= {"model.safetensors", "config.json"}


def test_training_that_diverges_stops_at_once(tmp_path):
    captions = Captions(PICTURES, VOCABULARY, longest=2)
    broken = {image: np.full((2, 3), np.nan, "f4") for image in FEATURES}
    with pytest.raises(ValueError, match="training diverged: the loss of step 1 is nan"):
        train(new(), captions, broken.get, tmp_path, seed=0, max_steps=5, **ARGUMENTS)
    shutil.rmtree(tmp_path)
