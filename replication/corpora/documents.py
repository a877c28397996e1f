"""What every corpus is made of: documents of tokenised sentences, with gold annotation where there is any."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sentence:
    """Words in order. ``tags``, ``chains`` and ``concepts`` are empty or as long as ``words``."""

    words: list[str]
    #: One part-of-speech tag per word (Universal Dependencies' UPOS where the corpus has them).
    tags: list[str] = field(default_factory=list)
    #: One coreference chain per word, numbered within the document; -1 outside every chain.
    chains: list[int] = field(default_factory=list)
    #: What every word expresses, numbered within the sentence and alike in its translations; -1 for nothing of its own.
    concepts: list[int] = field(default_factory=list)

    def __post_init__(self):
        for name in ("tags", "chains", "concepts"):
            annotation = getattr(self, name)
            if annotation and len(annotation) != len(self.words):
                raise ValueError(f"{name}: {len(annotation)} for {len(self.words)} words")


@dataclass(frozen=True)
class Document:
    """Sentences that belong together; a coreference chain never leaves its document."""

    sentences: list[Sentence]
