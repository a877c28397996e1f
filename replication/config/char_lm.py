"""The sections `char_lm` and `patterns`: models of characters and of pixels."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from replication.config.corpora import CharacterCorpus, Digits
from replication.schema import MISSING, Problem, Section
from replication.schema import types as t

#: scikit-learn's digits, and the symbols of each: its 64 pixels after a start symbol.
DIGITS, DIGIT_SYMBOLS = 1797, 65


class Recipe(Section):
    """Training with Adam, the same for all models. After the warm-up, the learning rate falls to 0 as a cosine."""

    steps: t.Count = Field(description="Steps of one segment in each row.")
    length: t.Count = Field(description="Symbols per segment.")
    learning_rate: t.AboveZero = Field(description="Peak learning rate.")
    warmup_steps: t.CountOrZero = Field(description="Steps of linear warm-up.")
    clip_norm: t.AboveZero = Field(description="Norm that gradients are clipped to.")
    log_every: t.Count = Field(description="Steps between lines of the log, each with the validation loss.")
    matmul_precision: t.MatmulPrecision = t.PRECISION

    def problems(self) -> Iterator[Problem]:
        if self.log_every > self.steps:
            yield ("log_every",), f"must be at most steps {self.steps}, got {self.log_every}"


class SharedSizes(Section):
    """Sizes that all models share."""

    layers: t.Count = Field(description="Layers.")
    dimension: t.Count = Field(description="Size of hidden states.")
    heads: t.Count = Field(description="Attention heads; must divide `dimension`.")
    inner: t.Count = Field(description="Inner size of feed-forward networks.")
    dropout: t.Dropout = Field(description="Dropout.")

    def problems(self) -> Iterator[Problem]:
        yield from t.divides(self, "heads", "dimension")


class _SymbolModels(Section):
    corpora: Annotated[dict[t.ShortName, CharacterCorpus], Field(min_length=1)] = Field(description="Corpora by name.")
    rows: t.ThreeSplits = Field(
        description="Rows per split: places of the text that are read side by side, each with its own memory. The batch size."
    )
    recipe: Recipe
    seeds: t.Unique[t.Seed] = Field(description="Seeds of weights and dropout.")
    sizes: SharedSizes


class _CharacterModel(Section):
    top_k: t.Maybe[t.Count] = Field(None, description="Keys of top-k attention; softmax if left out.")
    dropout: t.Maybe[t.Dropout] = Field(None, description="Dropout of this model; `sizes.dropout` if left out.")


class TransformerXL(_CharacterModel):
    """Transformer-XL."""

    architecture: Literal["transformer_xl"]
    memory_length: t.CountOrZero = Field(description="Symbols of memory; 0 is a block transformer.")


class AdaptiveSpan(_CharacterModel):
    """Adaptive attention span."""

    architecture: Literal["adaptive_span"]
    maximal_span: t.Count = Field(description="Largest span.")
    ramp: t.Count = Field(description="Length of the soft mask's ramp.")
    span_penalty: t.NotNegative = Field(description="Weight of the spans in the loss.")
    initial_span: t.number(ge=0, le=1) = Field(description="Initial span as a share of the largest.")


CharacterModel = TypeAliasType(
    "CharacterModel",
    Annotated[TransformerXL | AdaptiveSpan, Field(discriminator="architecture", description="A model of characters.")],
)


class CharacterModels(Section):
    """Models by their names in tables; leave out those that you do not need."""

    block: t.Maybe[CharacterModel] = Field(None, description="A transformer without memory.")
    transformer_xl: t.Maybe[CharacterModel] = Field(None, alias="transformer-xl", description="Transformer-XL.")
    transformer_xl_top_k: t.Maybe[CharacterModel] = Field(
        None, alias="transformer-xl-top-k", description="Transformer-XL with top-k."
    )
    adaptive_span: t.Maybe[CharacterModel] = Field(None, alias="adaptive-span", description="Adaptive span.")
    adaptive_span_top_32: t.Maybe[CharacterModel] = Field(
        None, alias="adaptive-span-top-32", description="Adaptive span with k = 32."
    )
    adaptive_span_top_8: t.Maybe[CharacterModel] = Field(
        None, alias="adaptive-span-top-8", description="Adaptive span with k = 8."
    )

    def problems(self) -> Iterator[Problem]:
        if not self.given():
            yield (), "must have at least one model"


class CharLM(_SymbolModels):
    """Character models of one size, each trained on each corpus with each seed."""

    models: CharacterModels


class Factorised(Section):
    """A pattern of Sparse Transformers."""

    pattern: Literal["strided", "fixed"] = Field(description="The pattern.")
    stride: t.Count = Field(description="Stride, l in the paper.")
    heads: Literal["interleaved", "merged", "per_head"] = Field(
        "interleaved", description="Combination of the pattern's parts."
    )
    summary: t.Maybe[t.Count] = Field(None, description="Summary positions of the fixed pattern, c in the paper.")

    def problems(self) -> Iterator[Problem]:
        if self.pattern == "fixed" and self.summary is None:
            yield ("summary",), f"{MISSING}; pattern fixed needs it"
        if self.pattern == "strided" and self.summary is not None:
            yield ("summary",), f"must be left out for pattern strided, got {self.summary}"


class MatrixModel(Section):
    """A transformer with an embedding for each row and column of its symbols."""

    architecture: Literal["matrix_transformer"] = Field(description="The architecture.")
    length: t.Count = Field(description="Symbols per segment, at least `recipe.length`.")
    width: t.Count = Field(description="Symbols per row.")
    factorised: t.Maybe[Factorised] = Field(None, description="Pattern of attention; dense if left out.")


class PatternModels(Section):
    """Models by their names in tables."""

    dense: MatrixModel = Field(description="Dense attention.")
    strided: MatrixModel = Field(description="The strided pattern.")
    fixed: MatrixModel = Field(description="The fixed pattern.")


class PatternTask(_SymbolModels):
    """Models that attend densely, along the strided and along the fixed pattern."""

    timed_steps: t.Count = Field(description="Training steps of each model that are timed, in turn.")
    models: PatternModels

    def problems(self) -> Iterator[Problem]:
        read = self.recipe.length
        for name, model in self.models:
            if model.length < read:
                yield ("models", name, "length"), f"must be at least recipe.length {read}, got {model.length}"
        for name, corpus in self.corpora.items():
            if isinstance(corpus, Digits):
                yield from self._digits(("corpora", name, "images"), corpus.images)

    def _digits(self, path: tuple[str, ...], images: t.ThreeSplits) -> Iterator[Problem]:
        length = self.recipe.length
        if length != DIGIT_SYMBOLS:
            yield (
                ("recipe", "length"),
                f"must be {DIGIT_SYMBOLS} for digits: a start symbol and 64 pixels, got {length}",
            )
        for (split, count), (_, rows) in zip(images, self.rows, strict=True):
            if count % rows:
                yield (*path, split), f"must be a multiple of rows.{split} {rows}, got {count}"
        total = sum(count for _, count in images)
        if total > DIGITS:
            yield path, f"must be at most {DIGITS} in total, got {total}"


class Patterns(Section):
    """The patterns of Sparse Transformers, trained at equal size and steps: at least one of both keys."""

    text: t.Maybe[PatternTask] = Field(None, description="Models of characters.")
    images: t.Maybe[PatternTask] = Field(None, description="Models of pixels.")

    def problems(self) -> Iterator[Problem]:
        if self.text is None and self.images is None:
            yield (), "must have text or images, got none"
