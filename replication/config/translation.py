"""The sections `translation`, `forms` and `normalizer_speed`: translators trained by fairseq."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from replication.config.corpora import parallel_corpora
from replication.config.grids import PredictedGraphs
from replication.schema import MISSING, Problem, Section
from replication.schema import types as t

Normalizer = Literal["softmax", "entmax15", "sparsemax", "entmax", "entmax_alpha", "topk"]
#: Normalisers that the package entmax has.
PACKAGED = ("entmax15", "sparsemax", "entmax_alpha")
Form = Literal["Full", "Block", "Window", "Dilated", "Global", "Random", "BigBird", "Top-k", "Top-k OOW"]
#: All forms, and two with another form in cross-attention.
FormOfRun = Literal[Form, "Top-k self", "Top-k OOW cross"]
Corpora = parallel_corpora("train", "valid", "test")


class TranslatorArchitecture(Section):
    """Sizes of the transformer, by fairseq's names."""

    encoder_layers: t.Count = Field(description="Encoder layers.")
    decoder_layers: t.Count = Field(description="Decoder layers.")
    encoder_embed_dim: t.Count = Field(description="Embedding size of the encoder.")
    decoder_embed_dim: t.Count = Field(description="Embedding size of the decoder.")
    encoder_ffn_embed_dim: t.Count = Field(description="Inner size of the encoder's feed-forward networks.")
    decoder_ffn_embed_dim: t.Count = Field(description="Inner size of the decoder's feed-forward networks.")
    encoder_attention_heads: t.Count = Field(description="Encoder heads; must divide `encoder_embed_dim`.")
    decoder_attention_heads: t.Count = Field(description="Decoder heads; must divide `decoder_embed_dim`.")

    def problems(self) -> Iterator[Problem]:
        for side in ("encoder", "decoder"):
            yield from t.divides(self, f"{side}_attention_heads", f"{side}_embed_dim")


class _Training(Section):
    lr: t.AboveZero = Field(description="Peak learning rate.")
    warmup_updates: t.CountOrZero = Field(description="Updates of linear warm-up.")
    max_tokens: t.whole(2) = Field(
        description="Largest number of tokens per batch. Longer training pairs are left out and counted in `training.json`."
    )
    update_freq: t.Count = Field(1, description="Batches per update.")
    max_update: t.Maybe[t.Count] = Field(None, description="Updates after which training ends.")
    dropout: t.Dropout = Field(0.1, description="Dropout.")
    coword_dropout: t.Dropout = Field(0.0, description="Share of source tokens replaced by `<unk>` in training.")
    weight_decay: t.NotNegative = Field(0.0, description="Weight decay.")
    fp16: bool = Field(False, description="Train in half precision.")
    matmul_precision: t.MatmulPrecision = t.PRECISION
    lr_scheduler: Literal["inverse_sqrt", "polynomial_decay"] = Field(
        "inverse_sqrt", description="Schedule of the learning rate: the papers', or a polynomial decay to 0."
    )
    total_num_update: t.Maybe[t.Count] = Field(None, description="Update at which `polynomial_decay` reaches 0.")
    log_interval: t.Count = Field(100, description="Updates between lines of the log.")
    save_interval_updates: t.Maybe[t.Count] = Field(None, description="Updates between checkpoints within an epoch.")
    keep_interval_updates: t.Maybe[t.Count] = Field(None, description="Number of these checkpoints to keep.")

    def problems(self) -> Iterator[Problem]:
        if self.lr_scheduler == "polynomial_decay" and self.total_num_update is None:
            yield ("total_num_update",), f"{MISSING}; lr_scheduler polynomial_decay needs it"
        if self.lr_scheduler != "polynomial_decay" and self.total_num_update is not None:
            what = f"must be left out unless lr_scheduler is polynomial_decay, got {self.total_num_update}"
            yield ("total_num_update",), what
        if self.keep_interval_updates is not None and self.save_interval_updates is None:
            yield ("save_interval_updates",), f"{MISSING}; keep_interval_updates needs it"


class SharedTraining(_Training):
    """fairseq's options of the training, the same for all normalisers: none about attention, and as many updates."""

    max_update: t.Count = Field(description="Updates after which training ends.")


class TranslatorTraining(_Training):
    """fairseq's options of the training. `max_update` or `max_epoch` is required."""

    max_epoch: t.Maybe[t.Count] = Field(None, description="Epochs after which training ends.")
    patience: t.Maybe[t.Count] = Field(
        None, description="Validations in a row without a lower loss after which training stops."
    )
    attention_normalizer: t.Maybe[Normalizer] = Field(
        None,
        description="Normaliser of attention. `entmax_alpha` learns an alpha per head. Without this key, `softmax` if there is "
        "an `attention_form`, else `entmax15`.",
    )
    attention_implementation: Literal["sparselib", "entmax"] = Field(
        "sparselib", description="Package of the normaliser; `entmax` has entmax15, sparsemax and entmax_alpha."
    )
    attention_alpha: t.Maybe[t.number(ge=1)] = Field(None, description="Alpha of the normaliser `entmax`.")
    attention_k: t.Maybe[t.Count] = Field(None, description="Attended keys of the normaliser `topk`.")
    attention_form: t.Maybe[Form] = Field(None, description="Attention form of Extremely Sparse Transformer.")
    attention_budget: t.Maybe[t.Count] = Field(None, description="Attended positions of `attention_form`.")
    attention_cross_form: t.Maybe[Literal["Full", "Random", "Top-k"]] = Field(
        None, description="Form of cross-attention, in place of `attention_form`."
    )

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.max_epoch is None and self.max_update is None:
            yield ("max_update",), f"{MISSING}; give max_update or max_epoch"
        for normalizer, key in (("entmax", "attention_alpha"), ("topk", "attention_k")):
            value, is_chosen = getattr(self, key), self.attention_normalizer == normalizer
            if is_chosen and value is None:
                yield (key,), f"{MISSING}; attention_normalizer {normalizer} needs it"
            if not is_chosen and value is not None:
                yield (key,), f"must be left out unless attention_normalizer is {normalizer}, got {value}"
        if self.attention_implementation == "entmax" and self.attention_normalizer not in (*PACKAGED, None):
            what = f"must be sparselib for attention_normalizer {self.attention_normalizer}, got 'entmax'"
            yield ("attention_implementation",), what
        for key in ("attention_budget", "attention_cross_form"):
            if self.attention_form is None and getattr(self, key) is not None:
                yield (key,), f"must be left out without attention_form, got {getattr(self, key)!r}"
        if self.attention_form is not None and self.attention_budget is None:
            yield ("attention_budget",), f"{MISSING}; attention_form {self.attention_form} needs it"


class _Translator(Section):
    corpus: Corpora = Field(description="Corpora by language pair, such as `en-de`, with a model for each.")
    words: Literal["moses", "spaces"] = Field(
        description="Tokenizer: Moses', or spaces if the text has one between any two words. Moses' gives way to spaces, with "
        "a note, in a language whose words it loses."
    )
    merges: t.Count = Field(description="Merge operations of the joint byte pair encoding.")
    architecture: TranslatorArchitecture
    training: TranslatorTraining


class Pretraining(Section):
    """A first model that `training` continues. Its subwords and dictionary are used throughout."""

    corpus: parallel_corpora("train", "valid") = Field(description="Corpora by language pair.")
    training: TranslatorTraining


class Decoding(Section):
    """Beam search under predicted graphs."""

    beam: t.Count = Field(description="Beam width.")
    sentences: t.Count = Field(description="Test sentences that are decoded under each predicted graph.")


class DecoderGraphs(t.TwoSplits):
    """Sentences per split whose decoder graphs are extracted."""

    longer_than: t.CountOrZero = Field(description="Length in pieces that a sentence must exceed.")


class Translation(PredictedGraphs, _Translator):
    """Translators with sparse attention, the graphs of their decoders and their prediction."""

    replaced_score: ClassVar[str] = "bleu"
    block_words: t.Maybe[t.Count] = Field(
        None,
        description="Words per side up to which a document's sentences are joined to segments, which are translated.",
    )
    pretraining: t.Maybe[Pretraining] = None
    decoding: Decoding
    graphs: DecoderGraphs
    global_tokens: Literal["none", "first"] = Field(
        description="Global tokens of all methods. A decoder cannot attend to its last token."
    )

    def problems(self) -> Iterator[Problem]:
        pretrained = self.pretraining.corpus if self.pretraining else self.corpus
        if missing := sorted(self.corpus.keys() - pretrained.keys()):
            yield ("pretraining", "corpus"), f"must have the pairs of corpus, got none for {', '.join(missing)}"
        yield from super().problems()


class Run(Section):
    """A grid of models: each form at each budget with each seed."""

    forms: t.Unique[FormOfRun] = Field(
        description="Attention forms. `Top-k self` leaves cross-attention full, `Top-k OOW cross` has Top-k there."
    )
    budgets: t.Unique[t.Count] = Field(description="Attended positions, k in the paper. `Full` has no budget.")
    seeds: t.Unique[t.Seed] = Field(description="Seeds of the models.")


class FormSentences(_Translator):
    """Translators of sentences."""

    beam: t.Count = Field(description="Beam width.")
    tested: t.Maybe[t.Count] = Field(None, description="First test sentences or blocks to measure; all by default.")
    runs: t.NonEmpty[Run] = Field(description="Grids of models.")
    models_per_job: t.Count = Field(
        description="Models that a job trains, one after the other. 1 uses all cores and risks one model. More save the start "
        "of jobs, if training takes no longer than that."
    )


class FormDocuments(FormSentences):
    """Translators of blocks of a document's sentences."""

    block_words: t.Count = Field(
        description="Words of a block, on the longer side. Blocks end where a document ends, if the corpus marks documents."
    )


class Forms(Section):
    """A translator for each attention form of Extremely Sparse Transformer, budget and seed: at least one of both keys."""

    sentences: t.Maybe[FormSentences] = None
    documents: t.Maybe[FormDocuments] = None

    def problems(self) -> Iterator[Problem]:
        if self.sentences is None and self.documents is None:
            yield (), "must have sentences or documents, got none"


class NormalizerSpeed(_Translator):
    """Speed of one translator with each normaliser (Explicit Sparse Transformer, Table 25), measured in one run."""

    corpus: Annotated[Corpora, Field(max_length=1)] = Field(description="The corpus of one language pair.")
    training: SharedTraining
    top_k: t.Count = Field(description="Keys of top-k attention.")
    repeats: t.Count = Field(description="Repeats of updates and of beam search, in turn; their median counts.")
    beam: t.Count = Field(description="Beam width.")
    batch: t.Count = Field(description="Sentences per batch of beam search.")
