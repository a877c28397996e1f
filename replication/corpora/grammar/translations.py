"""The embedded corpus in several languages: every sentence with its translations, aligned word by word."""

from collections.abc import Iterator
from dataclasses import dataclass

from replication.corpora.documents import Sentence
from replication.corpora.grammar import story
from replication.corpora.grammar.concepts import number_nodes
from replication.corpora.grammar.english import sentences as english
from replication.corpora.grammar.french import sentences as french
from replication.corpora.grammar.german import sentences as german
from replication.corpora.splits import deal
from replication.dice import Dice

_WRITERS = {"en": english.sentence, "de": german.sentence, "fr": french.sentence}
LANGUAGES = tuple(_WRITERS)


@dataclass(frozen=True)
class Translation:
    """One sentence in every language; two of them can be aligned by their concepts."""

    #: The number of its document within the split.
    document: int
    sentences: dict[str, Sentence]


def write_translations(
    sentences: dict[str, int], seed: int, languages: tuple[str, ...] = LANGUAGES
) -> dict[str, list[Translation]]:
    """Splits of at least so many sentences each, in whole documents; a seed is a text, whatever the languages.

    No sentence of one split is in another in the first language, the source.

    Raises
    ------
    ValueError
        If a language is not one of :data:`LANGUAGES`, there is none, or a split has no positive number of sentences.
    """
    if unknown := [language for language in languages if language not in _WRITERS]:
        raise ValueError(f"languages: {', '.join(unknown)} not among {', '.join(LANGUAGES)}")
    if not languages:
        raise ValueError(f"languages: choose some of {', '.join(LANGUAGES)}")
    source = languages[0]
    stream = _write_documents(seed, languages)
    dealt = deal(
        stream, sentences, "sentences", lambda document: [tuple(versions[source].words) for versions in document], len
    )
    return {
        split: [Translation(number, versions) for number, document in enumerate(documents) for versions in document]
        for split, documents in dealt.items()
    }


def _write_documents(seed: int, languages: tuple[str, ...]) -> Iterator[list[dict[str, Sentence]]]:
    """An endless stream of documents, each sentence in all the languages."""
    dice = Dice(seed)
    while True:
        document = []
        for utterance in story.tell(dice):
            numbers = number_nodes(utterance)
            document.append({language: _WRITERS[language](utterance, numbers) for language in languages})
        yield document
