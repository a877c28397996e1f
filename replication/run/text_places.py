"""Texts by place: the folder below a run's results, such as ``translation/en-de``, that they are read into and cut up in."""

from dataclasses import dataclass
from pathlib import Path

from replication.config import Config, Section
from replication.run.layout import (
    ALL_SPLITS,
    SPLITS,
    NormalizerSpeed,
    ParallelText,
    Tokens,
    Translation,
    results_folder,
)
from replication.run.places import section_of, translators
from replication.run.trained import members


@dataclass(frozen=True)
class TokenPlace:
    """A corpus in one language, and where it is cut into sequences."""

    config: Config
    place: str

    @property
    def name(self) -> str:
        """Return the name of an unseen text, or nothing."""
        return self.place.partition("/unseen/")[2]

    @property
    def files(self) -> Tokens:
        return Tokens(results_folder(self.config.profile) / self.place)

    @property
    def section_key(self) -> str:
        """Return the path of the section."""
        return self.place.partition("/")[0]

    @property
    def section(self) -> Section:
        return section_of(self.config, self.section_key)

    @property
    def corpus_key(self) -> tuple[str, str]:
        """Return the path of the section that has the corpus, and its key there."""
        return (f"{self.section_key}/unseen", self.name) if self.name else (self.section_key, "corpus")

    @property
    def corpus(self) -> Section:
        return self.section.unseen[self.name] if self.name else self.section.corpus

    @property
    def length(self) -> int:
        """Return the number of tokens of a sequence."""
        return self.section.length

    @property
    def splits(self) -> tuple[str, ...]:
        return ("valid",) if self.name else SPLITS

    @property
    def tagged(self) -> tuple[str, ...]:
        """Return the splits that are tagged where they have no gold tags."""
        return ("valid",) if self.place == "masked_lm" else ()

    @property
    def makes_tokenizer(self) -> bool:
        """Return whether a tokenizer is made here: the run's own model comes with its tokenizer, another one brings one."""
        return self.place == "masked_lm" or (self.place == "retrofit" and self.section.model != "masked_lm")

    @property
    def tokenizer(self) -> Path:
        own = self.place == "retrofit" and self.makes_tokenizer
        return self.files.tokenizer if own else Tokens(results_folder(self.config.profile) / "masked_lm").tokenizer

    @property
    def vocab_size(self) -> int | None:
        """Return the size of the vocabulary that is trained on this text, if one is."""
        return self.section.tokenizer.given().get("vocab_size") if self.place == "masked_lm" else None

    @property
    def pretrained(self) -> str | None:
        """Return the name of the model whose tokenizer is taken, if one is."""
        if self.place == "masked_lm":
            return self.section.tokenizer.given().get("pretrained")
        return self.section.model if self.makes_tokenizer else None


def token_place_names(config: Config) -> list[str]:
    """Return the place of every corpus that is cut into sequences of subwords."""
    unseen = [f"masked_lm/unseen/{name}" for name in config.masked_lm.unseen] if config.masked_lm else []
    return [*(["masked_lm"] if config.masked_lm else []), *unseen, *(["retrofit"] if config.retrofit else [])]


@dataclass(frozen=True)
class ParallelPlace:
    """A parallel corpus, and where it is cut into subwords."""

    config: Config
    place: str

    @property
    def section_key(self) -> str:
        """Return the path of the section."""
        return "/".join(self.place.split("/")[: 2 if self.place.startswith("forms/") else 1])

    @property
    def section(self) -> Section:
        head, _, unit = self.section_key.partition("/")
        section = section_of(self.config, head)
        return members(section)[unit] if unit else section

    @property
    def is_pretraining(self) -> bool:
        return self.place.endswith("/pretraining")

    @property
    def pair(self) -> tuple[str, str]:
        """Return the languages."""
        if self.place == "normalizer_speed":
            return tuple(next(iter(self.section.corpus)).split("-"))
        return tuple(self.place.removesuffix("/pretraining").rpartition("/")[2].split("-"))

    @property
    def files(self) -> ParallelText:
        folder = results_folder(self.config.profile) / self.place
        kinds = {"translation": Translation, "normalizer_speed": NormalizerSpeed}
        return kinds.get(self.place.partition("/")[0], ParallelText)(folder)

    @property
    def corpus_key(self) -> tuple[str, str]:
        """Return the path of the section that has the corpus, and its key there."""
        return f"{self.section_key}{'/pretraining' if self.is_pretraining else ''}/corpus", "-".join(self.pair)

    @property
    def corpus(self) -> Section:
        section = self.section.pretraining if self.is_pretraining else self.section
        return section.corpus["-".join(self.pair)]

    @property
    def splits(self) -> tuple[str, ...]:
        return SPLITS if self.is_pretraining else ALL_SPLITS

    @property
    def corpus_files(self) -> list[Path]:
        """Return the text files of both languages."""
        return [self.files.corpus(split, language) for split in self.splits for language in self.pair]

    @property
    def block_words(self) -> int | None:
        """Return the longest block of a document, in words, if documents are translated."""
        return None if self.is_pretraining else getattr(self.section, "block_words", None)

    @property
    def aligned(self) -> tuple[str, ...]:
        """Return the splits whose word alignment is written, if it is known. Blocks of documents have none."""
        return ("test",) if self.place.startswith("forms/") and not self.block_words else ()

    @property
    def like(self) -> Path | None:
        """Return another place's folder of binarized text, whose codes and dictionary are taken."""
        first = self.place.startswith("translation/") and not self.is_pretraining and self.section.pretraining
        return self.files.pretraining.data if first else None


def parallel_place_names(config: Config) -> list[str]:
    """Return the place of every parallel corpus."""
    first = ["/pretraining"] if config.translation and config.translation.pretraining else []
    translated = [f"{place}{end}" for place in translators(config) for end in ("", *first)]
    forms = [f"forms/{unit}/{pair}" for unit, section in members(config.forms).items() for pair in section.corpus]
    return [*translated, *forms, *(["normalizer_speed"] if config.normalizer_speed else [])]
