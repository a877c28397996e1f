"""The section `retrofit`: a model that was trained densely, made sparse."""

import math
from collections.abc import Iterator

from pydantic import Field

from replication.config.corpora import text_corpus
from replication.config.grids import Rules, too_many_clusters
from replication.config.masked_lm import Pretrained
from replication.schema import Problem, Section
from replication.schema import types as t


class RetrofitSequences(Section):
    """Sequences per purpose."""

    learn: t.Count = Field(description="Sequences that the students learn from.")
    calibrate: t.Count = Field(
        description="Sequences that the heads are tuned with; half of them choose, half calibrate."
    )
    held_out: t.Count = Field(description="Sequences to measure on.")


class Students(Section):
    """Projections, clusters and gates that learn to predict a head's pairs."""

    dimension: t.Count = Field(description="Size of the projected space.")
    gate_dimension: t.Count = Field(description="Size of the gate's projections.")
    epochs: t.Count = Field(description="Epochs of the projections.")
    gate_epochs: t.Count = Field(description="Epochs of the gate.")
    learning_rate: t.AboveZero = Field(description="Learning rate of both.")
    points: t.Count = Field(description="Queries and keys per head that k-means is fitted to.")


#: An alpha above 1 and at most 2, a share above 0 and at most 1, or a number of keys.
Gold = t.matching(
    "entmax:(1[.][0-9]*[1-9][0-9]*|2)|mass:(1|0?[.][0-9]*[1-9][0-9]*)|top:[1-9][0-9]*",
    "entmax:1.5, mass:0.95, top:8 or one of these with another number",
)


class Retrofit(Section):
    """A model that was not trained for sparse attention, made sparse by Sparsefinder and by third-party rules.

    Each head is tuned to a recall.
    """

    model: Pretrained = Field(
        description="`masked_lm` for the model of this run, a hub name, a folder, or `package:NAME/FOLDER` in an installed "
        "package."
    )
    corpus: text_corpus("train", "valid") = Field(description="Text: `train` to learn and tune, `valid` to measure.")
    length: t.whole(4) = Field(description="Tokens per sequence, the first and last included.")
    alpha: t.number(ge=1, le=2) = Field(description="Alpha of the model's normaliser; 1 is softmax.")
    gold: Gold = Field(
        description="Pairs that a head needs: `entmax:1.5`, `mass:0.95` (the fewest keys with that softmax weight) or `top:8`."
    )
    batch_size: t.Count = Field(description="Sequences per batch.")
    block: t.Count = Field(description="Tokens of a block, a page or a chunk; at most `length`.")
    window: t.CountOrZero = Field(description="Total width of the window that is added to each prediction.")
    recalls: t.Unique[t.Share] = Field(description="Recalls that each head is tuned to.")
    confidence: t.Share = Field(description="Confidence of each guaranteed recall.")
    sequences: RetrofitSequences
    students: Students
    rules: Rules = Field(description="The grid: rules by name.")

    def problems(self) -> Iterator[Problem]:
        for path, what in too_many_clusters(self.rules, "students.points", self.students.points):
            yield ("rules", *path), what
        for recall in self.recalls:
            # `sparselib.huggingface.guarantee.sequences_needed`, whose import takes seconds; a test compares them.
            certain = -math.log(1 - self.confidence)
            needed = 2 * math.ceil(certain / math.log1p(0.9 * (1 - recall) / recall))
            if self.sequences.calibrate < needed:
                what = f"must be at least {needed} for a recall of {recall}, got {self.sequences.calibrate}"
                yield ("sequences", "calibrate"), what
        if self.block > self.length:
            yield ("block",), f"must be at most length {self.length}, got {self.block}"
