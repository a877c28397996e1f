"""The section `masked_lm`: a masked language model, its attention graphs and its evaluation under predicted graphs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from replication.config.bible import BibleText
from replication.config.corpora import text_corpus
from replication.config.grids import Clustering, PredictedGraphs, clusters, listed
from replication.files.books import books_of
from replication.files.encoders import ENCODERS
from replication.files.paths import located
from replication.schema import MISSING, Problem, Section, checked
from replication.schema import types as t

#: The name of the validation split in the tables of perplexities.
HELD_OUT = "held-out"
Schedule = Literal["linear", "cosine", "constant", "constant_with_warmup"]


#: Names of models on the hub.
HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def _installed(name: str) -> Iterator[Problem]:
    try:
        folder = located(name)
    except FileNotFoundError as error:
        yield (), f"must have its package: {error}"
        return
    if not (Path(folder).is_dir() or HUB_NAME.fullmatch(name)):
        yield (), f"must be an existing folder or a name on the hub, got {name!r}"


Pretrained = Annotated[t.Location, checked(_installed, files=True)]


class Tokenizer(Section):
    """A byte-level BPE that is learned here, or a pretrained tokenizer: one of both keys."""

    vocab_size: t.Maybe[t.whole(300)] = Field(None, description="Vocabulary size of the BPE.")
    pretrained: t.Maybe[Pretrained] = Field(None, description="A hub name or a folder.")

    def problems(self) -> Iterator[Problem]:
        if (self.vocab_size is None) == (self.pretrained is None):
            yield (), f"must have one of vocab_size and pretrained, got {'none' if self.pretrained is None else 'both'}"


class _Attention(Section):
    normalizer: Literal["softmax", "entmax15", "sparsemax", "entmax"] = Field(
        "entmax15", description="Normaliser of attention."
    )
    alpha: t.Maybe[t.number(ge=1, le=2)] = Field(None, description="Alpha of the normaliser `entmax`.")

    @property
    def attention_alpha(self) -> float:
        """Alpha of the normaliser."""
        return self.alpha or {"softmax": 1.0, "entmax15": 1.5, "sparsemax": 2.0}[self.normalizer]

    def problems(self) -> Iterator[Problem]:
        if self.normalizer == "entmax" and self.alpha is None:
            yield ("alpha",), f"{MISSING}; normalizer entmax needs it"
        if self.normalizer != "entmax" and self.alpha is not None:
            yield ("alpha",), f"must be left out unless normalizer is entmax, got {self.alpha}"


class PretrainedModel(_Attention):
    """A pretrained model to fine-tune. A vocabulary head that it lacks starts from random weights, with a note."""

    pretrained: Pretrained = Field(
        description="A hub name, a folder, or `package:NAME/FOLDER` in an installed package: an encoder with a masked-LM head "
        f"in transformers ({', '.join(ENCODERS)})."
    )
    adapter_rank: t.Maybe[t.Count] = Field(
        None, description="Rank of low-rank adapters to train in place of the layers' weights."
    )
    hidden_dropout_prob: t.Maybe[t.Dropout] = Field(None, description="Dropout in place of the pretrained model's.")
    attention_probs_dropout_prob: t.Maybe[t.Dropout] = Field(None, description="The same for attention weights.")

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        found = settings_of(self.pretrained)
        if found and (kind := found.get("model_type")) not in ENCODERS:
            yield ("pretrained",), f"must be one of {', '.join(ENCODERS)}, got {kind} in {self.pretrained}"
        for key in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            if found and getattr(self, key) is not None and key not in found:
                yield (key,), f"must be left out, because the config.json of {self.pretrained} has no such key"


class NewModel(_Attention):
    """Sizes of a `RobertaConfig`, for a model that starts from random weights."""

    hidden_size: t.Count = Field(description="Size of hidden states.")
    num_hidden_layers: t.Count = Field(description="Layers, equal to `masked_lm.layers`.")
    num_attention_heads: t.Count = Field(description="Attention heads; must divide `hidden_size`.")
    intermediate_size: t.Count = Field(description="Inner size of feed-forward networks.")
    tied_query_key: bool = Field(
        False, description="Start each layer's key weights equal to its query weights. The papers do not."
    )
    sinusoidal_positions: bool = Field(
        False, description="Start positions as sinusoids, twice as large as token embeddings. The papers do not."
    )
    initializer_range: t.AboveZero = Field(0.02, description="Standard deviation of random weights.")
    hidden_dropout_prob: t.Dropout = Field(0.1, description="Dropout of hidden states.")
    attention_probs_dropout_prob: t.Dropout = Field(0.1, description="Dropout of attention weights.")

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        yield from t.divides(self, "num_attention_heads", "hidden_size")


def _kind(model: object) -> str:
    pretrained = "pretrained" in model if isinstance(model, dict) else isinstance(model, PretrainedModel)
    return t.PRETRAINED if pretrained else t.NEW


class Training(Section):
    """Training. All keys but the first four are transformers' `TrainingArguments`."""

    mask_probability: t.Share = Field(description="Share of tokens to predict.")
    causal_steps: t.CountOrZero = Field(0, description="First steps, which predict the next token instead.")
    held_out: t.Maybe[t.Count] = Field(
        None, description="Training sequences to hold out. The checkpoint with their lowest loss is kept."
    )
    patience: t.Maybe[t.Count] = Field(
        None, description="Checkpoints in a row without a lower held-out loss after which training stops."
    )
    max_steps: t.Count = Field(description="Optimizer steps.")
    per_device_train_batch_size: t.Count = Field(description="Sequences per batch.")
    gradient_accumulation_steps: t.Count = Field(1, description="Batches per step.")
    learning_rate: t.AboveZero = Field(description="Peak learning rate.")
    warmup_steps: t.CountOrZero = Field(0, description="Steps of linear warm-up.")
    weight_decay: t.NotNegative = Field(0.0, description="Weight decay.")
    adam_beta2: t.Share = Field(0.999, description="Adam's second beta.")
    adam_epsilon: t.AboveZero = Field(1e-8, description="Adam's epsilon.")
    max_grad_norm: t.AboveZero = Field(1.0, description="Norm that gradients are clipped to.")
    lr_scheduler_type: Schedule = Field("linear", description="Schedule of the learning rate.")
    bf16: bool = Field(False, description="Train in bfloat16.")
    logging_steps: t.Count = Field(description="Steps between lines of the log, at most `max_steps`.")
    save_steps: t.Count = Field(description="Steps between checkpoints.")

    def problems(self) -> Iterator[Problem]:
        if self.patience is not None and self.held_out is None:
            yield ("held_out",), f"{MISSING}; patience needs it"
        if self.logging_steps > self.max_steps:
            yield ("logging_steps",), f"must be at most max_steps {self.max_steps}, got {self.logging_steps}"


class Evaluation(Section):
    """Evaluation on masked validation text."""

    mask_probability: t.Share = Field(description="Share of tokens to predict.")
    seed: t.Seed = Field(description="Seed of the masking.")
    batch_size: t.Count = Field(description="Sequences per batch.")
    sequences: t.Count = Field(description="Sequences that are evaluated under predicted graphs.")


class Blocks(Section):
    """The efficient, block-based Sparsefinder (Figures 7 and 13)."""

    sizes: t.Unique[t.Count] = Field(description="Tokens per block, z in the paper.")
    counts: t.Unique[t.Count] = Field(
        description="Predicted or random blocks per query block, K in the paper; window and global blocks come on top. "
        "A K that leaves nothing to choose at some size is left out there."
    )
    clusters: t.Unique[t.Count] = Field(description="Clusters of version 2, at most `masked_lm.cluster_points`.")
    pooling: Literal["concatenate", "mean"] = Field(description="Pooling of projected tokens; the paper concatenates.")
    metric: Literal["sq_euclidean", "dot"] = Field(
        description="Metric of version 1; the projections are trained for `sq_euclidean`."
    )
    repeats: t.Count = Field(description="Repeats of each time measurement.")


def settings_of(pretrained: str) -> dict[str, object]:
    """Return the configuration of a model in a package or folder; an empty one if there is none."""
    try:
        return json.loads(Path(located(pretrained), "config.json").read_text())
    except (OSError, ValueError):
        return {}


def _unseen(name: str) -> Iterator[Problem]:
    if name == HELD_OUT:
        yield (), f"must have another name: {HELD_OUT} is the validation split of corpus"


def _seen(corpus: Section, unseen: dict[str, Section]) -> Iterator[Problem]:
    """Yield a problem for each unseen corpus with books that the model is trained on."""
    trained = books_of(corpus.given())["train"] if isinstance(corpus, BibleText) else []
    for name, other in unseen.items():
        if isinstance(other, BibleText) and (common := [book for book in other.valid if book in trained]):
            yield ("unseen", name, "valid"), f"must have other books than corpus.train, got {', '.join(common)} in both"


class _Model(Section):
    corpus: text_corpus("train", "valid", tagged="valid") = Field(description="Text to train and to evaluate on.")
    unseen: dict[Annotated[t.Name, checked(_unseen)], text_corpus("valid")] = Field(
        description="Further corpora to measure perplexity on. Only their validation splits are read."
    )
    tokenizer: Tokenizer
    length: t.whole(8) = Field(description="Tokens per sequence, `<s>` and `</s>` included.")
    layers: t.Count = Field(description="Layers of the model. The workflow expects a file for each.")
    model: Annotated[
        Annotated[PretrainedModel, Tag(t.PRETRAINED)] | Annotated[NewModel, Tag(t.NEW)], Discriminator(_kind)
    ] = Field(description="Sizes of a new RoBERTa, or the key `pretrained` with dropouts.")
    training: Training
    evaluation: Evaluation
    graphs: t.TwoSplits = Field(description="Sequences per split whose attention graphs are extracted.")

    def problems(self) -> Iterator[Problem]:
        yield from _seen(self.corpus, self.unseen)
        of_pretrained = isinstance(self.model, PretrainedModel)
        found = settings_of(self.model.pretrained) if of_pretrained else self.model.given()
        layers = found.get("num_hidden_layers", found.get("n_layers"))
        if layers not in (None, self.layers):
            source = f"in {self.model.pretrained}" if of_pretrained else "as model.num_hidden_layers"
            yield ("layers",), f"must be {layers} {source}, got {self.layers}"
        # Gold graphs are those of all tokens, and a layer with a window hides some of them in longer sequences.
        window = found.get("sliding_window") or found.get("local_attention", 0) // 2
        if (
            window
            and "sliding_attention" in found.get("layer_types", ["sliding_attention"])
            and self.length > window + 1
        ):
            yield (
                ("length",),
                f"must be at most {window + 1} for the windows of {self.model.pretrained}, got {self.length}",
            )
        per_step = self.training.per_device_train_batch_size * self.training.gradient_accumulation_steps
        for key, sequences in (("training", per_step), ("evaluation", self.evaluation.sequences)):
            share = getattr(self, key).mask_probability
            if share * (self.length - 2) * sequences < 1:
                yield (key, "mask_probability"), f"must mask a token of {sequences} sequences, got {share}"


class MaskedLM(PredictedGraphs, _Model):
    """A masked language model with sparse attention, its attention graphs and their prediction."""

    replaced_score: ClassVar[str] = "perplexity"
    tag_clusters: t.Count = Field(description="Clusters of the k-means that Figure 6 describes, one of `methods`.")
    global_tokens: Literal["none", "first", "first_last"] = Field(description="Global tokens of all methods.")
    blocks: t.Maybe[Blocks] = None

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        fitted = clusters(self.methods, Clustering)
        if self.tag_clusters not in fitted:
            what = f"must be among the Clustering clusters of methods ({listed(fitted)}), got {self.tag_clusters}"
            yield ("tag_clusters",), what
        for count in self.blocks.clusters if self.blocks else ():
            if count > self.cluster_points:
                yield ("blocks", "clusters"), f"must be at most cluster_points {self.cluster_points}, got {count}"
