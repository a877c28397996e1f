"""The section `captioning`: models that describe images."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from replication.config.masked_lm import Schedule
from replication.schema import MISSING, Problem, Section, checked
from replication.schema import types as t

SOFTMAX = "softmax"


class SceneImages(Section):
    """Images per split."""

    train: t.Count = Field(description="Training images.")
    test: t.whole(2) = Field(description="Test images.")


class Scenes(Section):
    """Scenes of things and animals, drawn here."""

    source: Literal["scenes"]
    images: SceneImages = Field(description="Images per split.")
    seed: t.Seed = Field(description="Seed of the scenes.")


def _file(path: str) -> Iterator[Problem]:
    if not Path(path).is_file():
        yield (), f"must be an existing file, got {path!r}"


def _folder(path: str) -> Iterator[Problem]:
    if not Path(path).is_dir():
        yield (), f"must be an existing folder, got {path!r}"


class Karpathy(Section):
    """Karpathy's splits of COCO, from local files."""

    source: Literal["karpathy"]
    captions: Annotated[t.Location, checked(_file, files=True)] = Field(
        description="Path of the file `dataset_coco.json`."
    )
    regions: Annotated[t.Location, checked(_folder, files=True)] = Field(
        description="Path of a folder with `<cocoid>.npz` for each image, whose `feat` has the shape [regions, width]."
    )


class Limits(Section):
    """Limits of words, captions and images."""

    word_count: t.Count = Field(description="Occurrences that a word needs to be in the vocabulary.")
    caption_words: t.Count = Field(description="Words that longer captions are cut to.")
    regions: t.Count = Field(description="Largest number of regions per image.")


class CaptionerArchitecture(Section):
    """Sizes of the transformer, by the names of transformers' `BartConfig`."""

    encoder_layers: t.Count = Field(description="Encoder layers.")
    decoder_layers: t.Count = Field(description="Decoder layers.")
    d_model: t.Count = Field(description="Size of hidden states.")
    encoder_attention_heads: t.Count = Field(description="Encoder heads; must divide `d_model`.")
    decoder_attention_heads: t.Count = Field(description="Decoder heads; must divide `d_model`.")
    encoder_ffn_dim: t.Count = Field(4096, description="Inner size of the encoder's feed-forward networks.")
    decoder_ffn_dim: t.Count = Field(4096, description="Inner size of the decoder's feed-forward networks.")
    dropout: t.Dropout = Field(0.1, description="Dropout.")
    init_std: t.AboveZero = Field(0.02, description="Standard deviation of random weights.")

    def problems(self) -> Iterator[Problem]:
        for side in ("encoder", "decoder"):
            yield from t.divides(self, f"{side}_attention_heads", "d_model")


class CaptionerTraining(Section):
    """Training, by the names of transformers' `TrainingArguments`."""

    per_device_train_batch_size: t.Count = Field(description="Captions per batch.")
    learning_rate: t.AboveZero = Field(description="Peak learning rate.")
    max_steps: t.Count = Field(description="Optimizer steps.")
    warmup_steps: t.CountOrZero = Field(0, description="Steps of linear warm-up.")
    lr_scheduler_type: Schedule = Field("linear", description="Schedule of the learning rate.")
    bf16: bool = Field(False, description="Train in bfloat16.")
    dataloader_num_workers: t.CountOrZero = Field(0, description="Processes that read images.")
    logging_steps: t.Count = Field(description="Steps between lines of the log.")
    save_steps: t.Count = Field(description="Steps between checkpoints.")


class Captioner(Section):
    """Attention of one model: top-k, or softmax if empty."""

    top_k: t.Maybe[t.Count] = Field(None, description="Keys of top-k in each attention.")


class CaptionerDecoding(Section):
    """Beam search."""

    beam: t.Count = Field(description="Beam width.")
    batch_size: t.Count = Field(description="Images per batch.")


def _with_softmax(models: dict[str, Captioner]) -> Iterator[Problem]:
    if SOFTMAX not in models:
        yield (SOFTMAX,), MISSING
    elif models[SOFTMAX].top_k is not None:
        yield (SOFTMAX, "top_k"), f"must be left out for the model softmax, got {models[SOFTMAX].top_k}"


class Captioning(Section):
    """Models that describe images, with softmax and with top-k in each attention."""

    source: Annotated[Scenes | Karpathy, Field(discriminator="source")] = Field(description="Images with captions.")
    limits: Limits
    architecture: CaptionerArchitecture
    training: CaptionerTraining
    seeds: t.Unique[t.Seed] = Field(description="Seeds of weights and batches.")
    models: Annotated[dict[t.ShortName, Captioner], checked(_with_softmax)] = Field(
        description="Models by name: `softmax`, which is `{}`, and others with their `top_k`."
    )
    decoding: CaptionerDecoding
    shown: t.Count = Field(description="Test images whose attention is stored.")

    def problems(self) -> Iterator[Problem]:
        if isinstance(self.source, Scenes) and self.shown > self.source.images.test:
            yield ("shown",), f"must be at most source.images.test {self.source.images.test}, got {self.shown}"
