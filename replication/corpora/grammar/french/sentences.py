"""Puts abstract clauses into French words, each with its UPOS tag, its coreference chain and its concept.

Of the past, events have the passé composé; states, habits and what is under way or depends on a modal verb have the
imparfait; and what lies before another past has the plus-que-parfait.
"""

from replication.corpora.documents import Sentence
from replication.corpora.grammar import concepts as c
from replication.corpora.grammar.clauses import (
    Clause,
    Coordination,
    Mention,
    NounPhrase,
    Quotation,
    Subordination,
    Utterance,
)
from replication.corpora.grammar.concepts import Word
from replication.corpora.grammar.french import forms
from replication.corpora.grammar.french.lexicon import CONJUNCTIONS, TIMES
from replication.corpora.grammar.french.phrases import (
    COMMA,
    DATIVE,
    DIRECT,
    SUBJECT,
    bare_noun,
    is_pronoun,
    noun_phrase,
    pronoun,
)
from replication.corpora.grammar.french.predicates import Predicate, after_verb, inflect, is_fronted, predicate
from replication.corpora.grammar.french.verbs import SPEECH

STOP, OPEN, CLOSE = Word(".", "PUNCT"), Word("«", "PUNCT"), Word("»", "PUNCT")


def sentence(utterance: Utterance, numbers: dict[int, int] | None = None) -> Sentence:
    """One sentence with its capital and its final mark, and with concepts if the nodes of the utterance have numbers.

    Raises
    ------
    UnknownWord
        If the French lexicon lacks a word of the utterance.
    """
    return c.sentence(c.tidy(forms.join(_utterance(utterance))), numbers)


def _utterance(utterance: Utterance) -> list[Word]:
    match utterance:
        case Subordination(main, conjunction, subordinate, fronted):
            dependent = [*_conjunction(conjunction, utterance, fronted), *_clause(subordinate)]
            return [*dependent, COMMA, *_clause(main), STOP] if fronted else [*_clause(main), *dependent, STOP]
        case Coordination(first, conjunction, second):
            comma = [] if conjunction == "and" else [COMMA]
            return [*_clause(first), *comma, *_conjunction(conjunction, utterance), *_clause(second), STOP]
        case Quotation():
            return _quotation(utterance)
    return [*_clause(utterance), STOP]


def _conjunction(conjunction: str, node: object, fronted: bool = False) -> list[Word]:
    tag = "CCONJ" if conjunction in ("and", "but") else "SCONJ"
    return [Word(text, tag, -1, node, c.CONJUNCTION) for text in CONJUNCTIONS[conjunction][-1 if fronted else 0]]


def _quotation(quotation: Quotation) -> list[Word]:
    words = _clause(quotation.words)
    if quotation.vocative:
        words = [*noun_phrase(quotation.vocative, _clause), COMMA, *words]
    mark = "?" if quotation.words.question else "!" if quotation.exclaimed else ""
    end = [Word(mark, "PUNCT"), CLOSE] if mark else [CLOSE, COMMA]
    return [OPEN, *words, *end, *_frame(quotation), STOP]


def _frame(quotation: Quotation) -> list[Word]:
    """Always inverted: "a dit Anna à Tom", "lui a -t-elle dit"."""
    verb, speaker, addressee = SPEECH[quotation.verb], quotation.speaker, quotation.addressee
    clause = Clause(quotation.verb, speaker, tense=quotation.tense)
    finite, rest = (
        [word._replace(node=word.node and quotation) for word in words]
        for words in inflect(clause, Predicate(verb), False)
    )
    clitic = [pronoun(addressee, DATIVE)] if is_pronoun(addressee) else []
    words = clitic + _inverted(finite, speaker, rest)
    if addressee and not clitic:
        words += [Word("à", "ADP", -1, addressee, c.CASE), *noun_phrase(addressee, _clause)]
    return words


def _inverted(finite: list[Word], subject: NounPhrase, rest: list[Word]) -> list[Word]:
    """The subject after the verb: "habite -t-elle", "a dit Anna"."""
    if not is_pronoun(subject):
        return [*finite, *rest, *noun_phrase(subject, _clause)]
    after = pronoun(subject, SUBJECT)
    needs_t = finite[-1].text[-1] in "aec" and after.text[0] in "ie"
    return [*finite, after._replace(text=("-t-" if needs_t else "-") + after.text), *rest]


def _clause(clause: Clause, in_past: bool = False) -> list[Word]:
    """Time, what is asked for or relativised, subject, predicate, objects, setting and content.

    ``in_past`` says that the clause depends on a past one.
    """
    parts = predicate(clause)
    finite, rest = inflect(clause, parts, in_past)
    after = after_verb(clause, parts, _clause)
    if clause.content:
        after += [*_conjunction("that", clause), *_clause(clause.content, clause.tense == "past")]
    if clause.question in ("where", "how old"):
        return [*_asked(clause), *_inverted(finite, clause.subject, rest), *after]
    return [*_opening(clause, parts), *_subject(clause), *finite, *rest, *after]


def _asked(clause: Clause) -> list[Word]:
    if clause.question == "where":
        return [Word("où", "ADV", -1, clause, c.QUESTION)]
    return [Word("quel", "DET", -1, clause, c.QUESTION), Word("âge", "NOUN", -1, clause, c.COMPLEMENT)]


def _opening(clause: Clause, parts: Predicate) -> list[Word]:
    """What comes before the subject: a time, "est-ce que", the pronoun of an object that is asked for or relativised."""
    words = []
    if clause.time:
        comma = [] if clause.time == "then" else [COMMA]
        words += [*c.phrase(TIMES[clause.time], clause, c.TIME), *comma]
    if is_fronted(clause.object):
        preposition = {"": "", "dative": "à"}.get(parts.verb.governs, parts.verb.governs)
        words += [Word(preposition, "ADP", -1, clause, c.PREPOSITION)] if preposition else []
        words += noun_phrase(clause.object, _clause, column=DATIVE if preposition else DIRECT)
    if clause.question:
        words += [Word("est-ce", "PART"), Word("que", "PART")]
    return words


def _subject(clause: Clause) -> list[Word]:
    """ "C'est une vieille boulangère", not "elle est une vieille boulangère"."""
    words = noun_phrase(clause.subject, _clause, column=SUBJECT)
    complement = clause.complement
    is_identified = isinstance(complement, Mention) and bare_noun(complement) is None
    if is_identified and is_pronoun(clause.subject) and clause.subject.form == "pronoun":
        return [words[0]._replace(text="ce")]
    return words
