"""Puts abstract clauses into German words, each with its UPOS tag, its coreference chain and its concept.

The past is the preterite, also in speech; "gerade" stands for what is under way.
"""

from typing import Literal

from replication.corpora.documents import Sentence
from replication.corpora.grammar import concepts as c
from replication.corpora.grammar import lexicon
from replication.corpora.grammar.clauses import (
    Age,
    Clause,
    Coordination,
    Mention,
    NounPhrase,
    Quotation,
    Subordination,
    Tense,
    Utterance,
)
from replication.corpora.grammar.concepts import Word
from replication.corpora.grammar.german import forms
from replication.corpora.grammar.german.lexicon import ADJECTIVES, ADVERBS, CONJUNCTIONS, MODALS, NUMBERS, TIMES
from replication.corpora.grammar.german.phrases import (
    COMMA,
    agreement,
    bare_noun,
    contract,
    is_indefinite,
    is_pronoun,
    noun_phrase,
    prepositional,
    setting,
)
from replication.corpora.grammar.german.verbs import OF_ANIMALS, SENSES, SPEECH, VERBS, Verb

STOP, OPEN, CLOSE = Word(".", "PUNCT"), Word("„", "PUNCT"), Word("“", "PUNCT")
#: Where the finite verb stands: after the first constituent, before everything (a question, or after a subordinate
#: clause), or after everything (a subordinate clause).
Order = Literal["second", "first", "last"]


def sentence(utterance: Utterance, numbers: dict[int, int] | None = None) -> Sentence:
    """One sentence with its capital and its final mark, and with concepts if the nodes of the utterance have numbers.

    Raises
    ------
    UnknownWord
        If the German lexicon lacks a word of the utterance.
    """
    return c.sentence(c.tidy(_utterance(utterance)), numbers)


def _utterance(utterance: Utterance) -> list[Word]:
    match utterance:
        case Subordination(main, conjunction, subordinate, fronted):
            text = _conjunction(conjunction, subordinate.tense)
            dependent = [Word(text, "SCONJ", -1, utterance, c.CONJUNCTION), *_clause(subordinate, "last")]
            if fronted:
                return [*dependent, COMMA, *_clause(main, "first"), STOP]
            return [*_clause(main), COMMA, *dependent, STOP]
        case Coordination(first, conjunction, second):
            joint = Word(_conjunction(conjunction, first.tense), "CCONJ", -1, utterance, c.CONJUNCTION)
            comma = [] if conjunction == "and" else [COMMA]
            return [*_clause(first), *comma, joint, *_clause(second), STOP]
        case Quotation():
            return _quotation(utterance)
    return [*_clause(utterance), STOP]


def _conjunction(conjunction: str, tense: Tense) -> str:
    """A single event of the past has "als" where the present has "wenn"."""
    return CONJUNCTIONS[conjunction][0 if tense == "past" else 1]


def _quotation(quotation: Quotation) -> list[Word]:
    words = _clause(quotation.words, "first" if quotation.words.question == "whether" else "second")
    if quotation.vocative:
        words = [*noun_phrase(quotation.vocative, "nom", _relative), COMMA, *words]
    mark = "?" if quotation.words.question else "!" if quotation.exclaimed else ""
    end = [Word(mark, "PUNCT")] if mark else []
    return [OPEN, *words, *end, CLOSE, COMMA, *_frame(quotation), STOP]


def _frame(quotation: Quotation) -> list[Word]:
    """Always inverted: "sagte Anna zu Tom", "rief sie ihm zu"."""
    verb = SPEECH[f"{quotation.verb} to" if quotation.addressee else quotation.verb]
    text = forms.finite(verb.infinitive, quotation.tense, *agreement(quotation.speaker))
    words = [Word(text, "VERB", -1, quotation, c.VERB), *noun_phrase(quotation.speaker, "nom", _relative)]
    if quotation.addressee:
        addressee = noun_phrase(quotation.addressee, verb.case, _relative)
        if verb.preposition:
            addressee = contract([Word(verb.preposition, "ADP", -1, quotation.addressee, c.CASE), *addressee])
        words += addressee
    if verb.prefix:
        words.append(Word(verb.prefix, "ADP", -1, quotation, c.VERB))
    return words


def _relative(clause: Clause) -> list[Word]:
    return _clause(clause, "last")


def _clause(clause: Clause, order: Order = "second") -> list[Word]:
    """The first constituent, the finite verb, what is between it and the rest of the predicate, and the content."""
    verb = _verb(clause)
    opening = _opening(clause, verb, order)
    subject, itself = noun_phrase(clause.subject, "nom", _relative), _reflexive(clause, verb)
    finite, closing = _predicate(clause, verb, order)
    middle = _middle(clause, verb, order)
    content = []
    if clause.content:
        joint = Word(_conjunction("that", clause.tense), "SCONJ", -1, clause, c.CONJUNCTION)
        content = [COMMA, joint, *_clause(clause.content, "last"), COMMA]
    if order == "last":
        return [*opening, *subject, *itself, *middle, *closing, finite, *content]
    if not opening and order == "second":
        return [*subject, finite, *itself, *middle, *closing, *content]
    # "Wusch er sich", but "wusch sich der Bäcker".
    subject = [*subject, *itself] if is_pronoun(clause.subject) else [*itself, *subject]
    return [*opening, finite, *subject, *middle, *closing, *content]


def _opening(clause: Clause, verb: Verb, order: Order) -> list[Word]:
    """What comes before the subject: a time, the word that asks, the relative pronoun of an object."""
    match clause.question:
        case "where":
            return [Word("wo", "ADV", -1, clause, c.QUESTION)]
        case "how old":
            how, old = Word("wie", "ADV", -1, clause, c.QUESTION), Word("alt", "ADJ", -1, clause, c.COMPLEMENT)
            return [how, old]
    if _is_fronted(clause.object):
        if verb.preposition:
            return prepositional(verb.preposition, clause.object, verb.case, _relative, clause)
        return noun_phrase(clause.object, verb.case, _relative)
    return _time(clause) if order == "second" else []


def _time(clause: Clause) -> list[Word]:
    return c.phrase(TIMES[clause.time], clause, c.TIME) if clause.time else []


def _is_fronted(phrase: NounPhrase | None) -> bool:
    return isinstance(phrase, Mention) and phrase.form in ("relative", "question")


def _verb(clause: Clause) -> Verb:
    """The verb, which may depend on the object and on whether an animal is the subject."""
    thing = (
        clause.object.entity.noun if clause.object else "self" if clause.reflexive else "that" if clause.content else ""
    )
    if sense := SENSES.get((clause.verb, thing)):
        return sense
    if clause.verb in OF_ANIMALS and clause.subject.entity.noun in lexicon.ANIMALS:
        return OF_ANIMALS[clause.verb]
    return VERBS[clause.verb]


def _predicate(clause: Clause, verb: Verb, order: Order) -> tuple[Word, list[Word]]:
    """The finite verb, and what else of the predicate stands at the end of the clause: prefix, infinitive, participle."""
    helper, rest = None, ""
    if clause.modal or clause.aspect == "prospective":
        helper, rest = MODALS[clause.modal] if clause.modal else "werden", forms.infinitive(verb)
    elif clause.aspect == "perfect":
        helper, rest = "sein" if verb.moves or clause.verb == "be" else "haben", forms.participle(verb)
    text = forms.finite(helper or verb.infinitive, clause.tense, *agreement(clause.subject))
    tag = "AUX" if clause.verb == "be" else "VERB"
    if helper:
        closing = [Word(word, tag, -1, clause, c.VERB) for word in rest.split()]
        return Word(text, "AUX", -1, clause, c.HELPER), closing
    if not verb.prefix:
        return Word(text, tag, -1, clause, c.VERB), []
    if order != "last":
        return Word(text, tag, -1, clause, c.VERB), [Word(verb.prefix, "ADP", -1, clause, c.VERB)]
    *before, last = forms.prefixed(verb.prefix, text).split()
    return Word(last, tag, -1, clause, c.VERB), [Word(word, tag, -1, clause, c.VERB) for word in before]


def _middle(clause: Clause, verb: Verb, order: Order) -> list[Word]:
    """Pronouns and names, how often, how, what is known, negation, where, what is new, and what completes the verb."""
    early, known, new = _objects(clause, verb)
    words = early
    if order != "second" or clause.question:
        words += _time(clause)
    if clause.aspect == "progressive" and order != "last" and clause.subject.entity.chain >= 0:
        words.append(Word("gerade", "ADV", -1, clause, c.HELPER))
    often, how = _adverb(clause.frequency, clause, c.FREQUENCY), _adverb(clause.manner, clause, c.MANNER)
    words += known + often + how if clause.frequency == "never" else often + how + known
    negation = [Word("nicht", "PART", -1, clause, c.NEGATION)] if clause.negative else []
    if new and clause.negative and is_indefinite(clause.object):
        # "Kein" has negated it already, except where a number takes the place of the article.
        new, negation = (negation + new if clause.object.entity.count else new), []
    words += negation
    if clause.setting:
        words += setting(clause.setting, _relative)
    return words + new + _complement(clause)


def _adverb(lemma: str | None, clause: Clause, role: int) -> list[Word]:
    return [Word(word, "ADV", -1, clause, role) for word in ADVERBS[lemma]] if lemma else []


def _reflexive(clause: Clause, verb: Verb) -> list[Word]:
    if not clause.reflexive and not verb.is_reflexive:
        return []
    subject = clause.subject
    text = forms.REFLEXIVES.get(getattr(subject, "form", ""), "sich")
    return [Word(text, "PRON", subject.entity.chain, clause if clause.reflexive else None, c.REFLEXIVE)]


def _objects(clause: Clause, verb: Verb) -> tuple[list[Word], list[Word], list[Word]]:
    """Pronouns, names and the recipient; what else is known; what is new or has a preposition."""
    thing = clause.object
    recipient = noun_phrase(clause.recipient, "dat", _relative) if clause.recipient else []
    if thing is None or _is_fronted(thing):
        return recipient, [], []
    if verb.preposition:
        return recipient, [], prepositional(verb.preposition, thing, verb.case, _relative, clause)
    if is_indefinite(thing):
        is_negated = clause.negative and not thing.entity.count
        words = noun_phrase(thing, verb.case, _relative, is_negated)
        if is_negated:
            words[0] = words[0]._replace(node=clause)
        return recipient, [], words
    words = noun_phrase(thing, verb.case, _relative)
    if is_pronoun(thing):
        return words + recipient, [], []
    return (recipient + words, [], []) if getattr(thing, "form", "name") == "name" else (recipient, words, [])


def _complement(clause: Clause) -> list[Word]:
    match clause.complement:
        case None:
            return []
        case Age(years) as age:
            numeral, head = Word(NUMBERS[years], "NUM", -1, age, c.NUMERAL), Word("Jahre", "NOUN", -1, age, c.HEAD)
            return [numeral, head, Word("alt", "ADJ", -1, age, c.ADJECTIVE)]
        case Mention() as mention:
            return bare_noun(mention) or noun_phrase(mention, "nom", _relative)
    return [Word(ADJECTIVES[clause.complement][0], "ADJ", -1, clause, c.COMPLEMENT)]
