"""Paths of a run's files, shared by the stages that read and write them and by the rules that declare them.

Each class has the files of one folder below ``results/<profile>``. Arguments may be Snakemake wildcards such as ``"{seed}"``.

>>> MaskedLM(Path("results/demo/masked_lm")).sweep("bigbird").as_posix()
'results/demo/masked_lm/sweep/bigbird.parquet'
"""

from dataclasses import dataclass
from pathlib import Path

#: Splits whose attention graphs are stored: students learn from the first and are measured on the second.
SPLITS = ("train", "valid")
#: Splits of a parallel corpus and of a text of characters.
ALL_SPLITS = ("train", "valid", "test")

# Files that a training leaves in its model's folder.
TRANSLATOR_FILES = ("model.safetensors", "training.csv", "training.json")
MASKED_LM_FILES = (*TRANSLATOR_FILES, "config.json")
#: Of a masked language model that was fine-tuned by adapters.
ADAPTERS = "adapters.safetensors"
CHARACTER_FILES = ("model.safetensors", "log.csv", "training.json")
CAPTIONER_FILES = (*TRANSLATOR_FILES, "config.json", "vocabulary.json")
# Files that a measurement adds to it.
FORM_TABLES = ("measured.csv", "sentences.parquet", "cross_attention.csv")
CHARACTER_TABLES = ("measured.csv", "segments.parquet")
CAPTIONER_TABLES = ("measured.csv", "captions.parquet", "attention.parquet")


def results_folder(profile: str) -> Path:
    """Return the folder of a profile's results."""
    return Path("results", profile)


def tokenizer_files(tokenizer: Path) -> list[Path]:
    """Return all files of a tokenizer, given its main file."""
    return [tokenizer, tokenizer.with_name("tokenizer_config.json")]


def reach_table(profile: str) -> Path:
    """Return the table of the factorised patterns, for which no model is trained."""
    return results_folder(profile) / "factorised" / "reach.csv"


def scaling_table(profile: str) -> Path:
    """Return the table of attention's time and memory against its length."""
    return results_folder(profile) / "scaling.csv"


def layer_file(layer: int | str) -> str:
    """Return the name of a layer's file; `layer` is a number or a wildcard."""
    return f"layer{layer:02}.safetensors" if isinstance(layer, int) else f"layer{layer}.safetensors"


@dataclass(frozen=True)
class Tokens:
    """A corpus cut into sequences: of the masked language model, of an unseen text, or of the sparsified model."""

    folder: Path

    @property
    def tokenizer(self) -> Path:
        return self.folder / "tokenizer" / "tokenizer.json"

    def corpus(self, split: str) -> Path:
        return self.folder / "corpus" / f"{split}.parquet"

    def tokens(self, split: str) -> Path:
        return self.folder / "tokens" / f"{split}.safetensors"


@dataclass(frozen=True)
class GraphTask:
    """A task whose attention graphs are stored and predicted."""

    folder: Path

    def graphs(self, split: str, layer: int | str) -> Path:
        return self.folder / "graphs" / split / layer_file(layer)

    def projections(self, seed: int | str) -> Path:
        return self.folder / "projections" / f"seed{seed}"

    def centroids(self, seed: int | str) -> Path:
        return self.folder / "centroids" / f"seed{seed}"

    def sweep(self, method: str) -> Path:
        """Return the recall sweep of a method, of all seeds."""
        return self.folder / "sweep" / f"{method}.parquet"

    def replaced(self, seed: int | str) -> Path:
        return self.folder / "replaced" / f"seed{seed}.csv"


@dataclass(frozen=True)
class MaskedLM(GraphTask, Tokens):
    """The masked language model."""

    @property
    def model(self) -> Path:
        return self.folder / "model" / "model.safetensors"

    def model_file(self, name: str) -> Path:
        return self.folder / "model" / name

    def unseen(self, name: str) -> Tokens:
        return Tokens(self.folder / "unseen" / name)

    def losses(self, seed: int | str) -> Path:
        return self.folder / "replaced" / f"losses_seed{seed}.parquet"

    @property
    def perplexity(self) -> Path:
        return self.folder / "perplexity.csv"

    @property
    def coreference(self) -> Path:
        return self.folder / "coreference.csv"

    @property
    def tags(self) -> Path:
        return self.folder / "tags.csv"

    @property
    def passage(self) -> Path:
        """Return the file that the attention explorer is made from."""
        return self.folder / "passage.json"

    def block_student(self, size: int | str, seed: int | str, kind: str, layer: int | str) -> Path:
        """Return the file of a layer's chunk ``projections`` or ``centroids``."""
        return self.folder / "blocks" / f"size{size}" / f"seed{seed}" / kind / layer_file(layer)

    def blocks_evaluated(self, size: int | str, seed: int | str) -> Path:
        return self.folder / "blocks" / f"size{size}" / "evaluated" / f"seed{seed}.csv"

    def block_losses(self, size: int | str, seed: int | str) -> Path:
        return self.folder / "blocks" / f"size{size}" / "evaluated" / f"losses_seed{seed}.parquet"

    def blocks_timed(self, size: int | str) -> Path:
        return self.folder / "blocks" / f"size{size}" / "timed.csv"


@dataclass(frozen=True)
class ParallelText:
    """A parallel corpus and its subwords."""

    folder: Path

    def corpus(self, split: str, language: str) -> Path:
        return self.folder / "corpus" / f"{split}.{language}"

    def alignment(self, split: str) -> Path:
        return self.folder / "corpus" / f"{split}.alignment"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def codes(self) -> Path:
        return self.data / "codes.bpe"

    def pieces(self, source: str, target: str) -> list[Path]:
        """Return the files of subwords that a translator is trained and validated on."""
        return [self.data / "pieces" / f"{split}.{language}" for split in SPLITS for language in (source, target)]

    def cell(self, name: str) -> Path:
        """Return the folder of a translator with one attention form."""
        return self.folder / name


@dataclass(frozen=True)
class Translation(GraphTask, ParallelText):
    """A translator of one language pair."""

    @property
    def model(self) -> Path:
        return self.folder / "model" / "model.safetensors"

    def model_file(self, name: str) -> Path:
        return self.folder / "model" / name

    @property
    def pretraining(self) -> "Translation":
        """The model that is trained first, on another corpus."""
        return Translation(self.folder / "pretraining")

    def graph_sentences(self, split: str) -> Path:
        return self.folder / "graphs" / split / "sentences.parquet"

    def sentences(self, seed: int | str) -> Path:
        return self.folder / "replaced" / f"sentences_seed{seed}.parquet"

    @property
    def bleu(self) -> Path:
        return self.folder / "bleu.csv"

    @property
    def hypotheses(self) -> Path:
        return self.folder / "hypotheses.txt"


@dataclass(frozen=True)
class NormalizerSpeed(ParallelText):
    """Translators that differ in the normaliser of their attention."""

    @property
    def models(self) -> Path:
        return self.folder / "models"

    @property
    def table(self) -> Path:
        return self.folder / "speed.csv"

    @property
    def sentences(self) -> Path:
        return self.folder / "sentences.parquet"

    @property
    def details(self) -> Path:
        return self.folder / "speed.json"


@dataclass(frozen=True)
class Symbols:
    """Models of characters or pixels, of one corpus."""

    folder: Path

    def text(self, split: str) -> Path:
        return self.folder / "text" / f"{split}.txt"

    @property
    def summary(self) -> Path:
        return self.folder / "text" / "corpus.json"

    def model(self, name: str, seed: int | str) -> Path:
        """Return a model's folder."""
        return self.folder / "models" / name / f"seed{seed}"

    @property
    def baselines(self) -> Path:
        return self.folder / "baselines.csv"

    @property
    def parts(self) -> Path:
        return self.folder / "parts.csv"

    @property
    def steps(self) -> Path:
        return self.folder / "steps.csv"


@dataclass(frozen=True)
class Captioning:
    """Captioners, and the pictures that they describe."""

    folder: Path

    def pictures(self, split: str) -> Path:
        return self.folder / "pictures" / f"{split}.jsonl"

    @property
    def summary(self) -> Path:
        return self.folder / "pictures" / "pictures.json"

    @property
    def regions(self) -> Path:
        return self.folder / "pictures" / "regions.npz"

    def model(self, name: str, seed: int | str) -> Path:
        """Return a model's folder."""
        return self.folder / "models" / name / f"seed{seed}"


@dataclass(frozen=True)
class Retrofit(Tokens):
    """A model that is sparsified without training."""

    @property
    def rules(self) -> Path:
        return self.folder / "rules.parquet"

    @property
    def learning(self) -> Path:
        return self.folder / "learning.csv"

    def sparsified(self, recall: float | str) -> Path:
        """Return the folder of the model tuned to a recall."""
        return self.folder / "sparsified" / f"recall{recall}"
