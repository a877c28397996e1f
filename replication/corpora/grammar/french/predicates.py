"""French predicates: tense, auxiliary, negation, clitic pronouns, participles, and what follows the verb."""

from collections.abc import Callable
from dataclasses import dataclass

from replication.corpora.grammar import concepts as c
from replication.corpora.grammar.clauses import Age, Clause, Mention, NounPhrase
from replication.corpora.grammar.concepts import Word
from replication.corpora.grammar.french import forms
from replication.corpora.grammar.french.lexicon import ADVERBS, HABITS, MODALS, NUMBERS
from replication.corpora.grammar.french.phrases import (
    DATIVE,
    DIRECT,
    agreement,
    bare_noun,
    is_pronoun,
    is_thing,
    noun_phrase,
    person,
    pronoun,
    setting,
)
from replication.corpora.grammar.french.phrases import predicate as predicate_adjective
from replication.corpora.grammar.french.verbs import PREDICATES, SENSES, VERBS, Verb

#: Places before the verb: "me le", "le lui", "lui y".
_FIRST, _DIRECT, _DATIVE, _PLACE = range(4)


@dataclass(frozen=True)
class Predicate:
    """The verb of a clause, which may be that of an adjective ("avoir faim"), and how a pronoun stands before it."""

    verb: Verb
    #: Whether the verb says what the adjective says.
    is_adjective: bool = False
    clitics: tuple[Word, ...] = ()


def is_fronted(phrase: NounPhrase | None) -> bool:
    return isinstance(phrase, Mention) and phrase.form in ("relative", "question")


def predicate(clause: Clause) -> Predicate:
    if isinstance(clause.complement, Age) or clause.question == "how old":
        return Predicate(VERBS["have"])
    if clause.verb == "be" and clause.complement in PREDICATES:
        verb = PREDICATES[clause.complement]
        return Predicate(verb, is_adjective=True, clitics=_clitics(clause, verb))
    thing = (
        clause.object.entity.noun if clause.object else "self" if clause.reflexive else "that" if clause.content else ""
    )
    verb = SENSES.get((clause.verb, thing)) or VERBS[clause.verb]
    return Predicate(verb, clitics=_clitics(clause, verb))


def _clitics(clause: Clause, verb: Verb) -> tuple[Word, ...]:
    """Pronouns before the verb, in their order."""
    found: list[tuple[int, Word]] = []
    if clause.reflexive or verb.is_reflexive:
        kind = getattr(clause.subject, "form", "")
        text = forms.PRONOUNS[kind][DIRECT] if kind in ("speaker", "addressee") else "se"
        node = clause if clause.reflexive else None
        found.append((_FIRST, Word(text, "PRON", clause.subject.entity.chain, node, c.REFLEXIVE)))
    if is_pronoun(clause.object):
        found += _object_clitic(clause.object, verb)
    if is_pronoun(clause.recipient):
        place = _DATIVE if clause.recipient.form == "pronoun" else _FIRST
        found.append((place, pronoun(clause.recipient, DATIVE)))
    return tuple(word for _, word in sorted(found, key=lambda pair: pair[0]))


def _object_clitic(thing: Mention, verb: Verb) -> list[tuple[int, Word]]:
    is_third = thing.form == "pronoun"
    match verb.governs:
        case "":
            return [(_DIRECT if is_third else _FIRST, pronoun(thing, DIRECT))]
        case "dative":
            return [(_DATIVE if is_third else _FIRST, pronoun(thing, DATIVE))]
        case "à" if is_thing(thing):
            return [(_PLACE, pronoun(thing, DIRECT)._replace(text="y"))]
    return []


def inflect(clause: Clause, parts: Predicate, in_past: bool) -> tuple[list[Word], list[Word]]:
    """The words up to the finite verb, and the rest of the predicate: negation, adverbs, infinitive or participle."""
    verb = parts.verb
    role = c.COMPLEMENT if parts.is_adjective and not verb.particle else c.VERB
    tag = "AUX" if clause.verb == "be" else "VERB"
    compound, form = _tense(clause, verb, in_past)
    clitics = list(parts.clitics)
    if clause.modal:
        finite = _finite(MODALS[clause.modal], form, clause, "AUX", c.HELPER)
        rest = [*clitics, Word(verb.infinitive, tag, -1, clause, role)]
        before = [finite]
    elif compound:
        auxiliary = "être" if verb.moves or verb.is_reflexive or clause.reflexive else "avoir"
        finite = _finite(auxiliary, form, clause, "AUX", c.HELPER)
        if clause.aspect != "perfect":
            finite = finite._replace(node=None)
        before = [*clitics, finite]
        rest = [Word(_participle(clause, verb, auxiliary), tag, -1, clause, role)]
    else:
        before, rest = [*clitics, _finite(verb.infinitive, form, clause, tag, role)], []
    negation = _negation(clause)
    frequency = _adverb(clause.frequency, clause, c.FREQUENCY) if clause.frequency != "never" else []
    particle_role = c.COMPLEMENT if parts.is_adjective else c.VERB
    particle = [Word(text, "NOUN", -1, clause, particle_role) for text in verb.particle]
    after = [*negation[1:], *frequency, *rest, *particle, *_adverb(clause.manner, clause, c.MANNER)]
    return [*negation[:1], *before], after


def _finite(infinitive: str, form: forms.Form, clause: Clause, tag: str, role: int) -> Word:
    return Word(forms.finite(infinitive, form, *person(clause.subject)), tag, -1, clause, role)


def _tense(clause: Clause, verb: Verb, in_past: bool) -> tuple[bool, forms.Form]:
    """Whether an auxiliary is needed, and the form of the finite verb."""
    is_past = clause.tense == "past"
    if clause.aspect == "prospective":
        return False, "conditional" if is_past else "future"
    if clause.aspect == "perfect":
        return True, "imparfait" if is_past else "present"
    if not is_past:
        return False, "present"
    is_habit = clause.frequency in HABITS or clause.time == "every day"
    if clause.modal or clause.aspect == "progressive" or verb.is_state or is_habit:
        return False, "imparfait"
    return True, "imparfait" if in_past else "present"


def _participle(clause: Clause, verb: Verb, auxiliary: str) -> str:
    """Agrees with the subject after "être", and after "avoir" with a direct object that comes first."""
    if auxiliary == "être":
        return forms.participle(verb.infinitive, *agreement(clause.subject))
    if verb.governs == "" and (is_pronoun(clause.object) or is_fronted(clause.object)):
        return forms.participle(verb.infinitive, *agreement(clause.object))
    return forms.participle(verb.infinitive)


def _negation(clause: Clause) -> list[Word]:
    if clause.negative:
        return [Word(text, "PART", -1, clause, c.NEGATION) for text in ("ne", "pas")]
    if clause.frequency == "never":
        return [Word("ne", "PART", -1, clause, c.FREQUENCY), *_adverb("never", clause, c.FREQUENCY)]
    return []


def _adverb(lemma: str | None, clause: Clause, role: int) -> list[Word]:
    return c.phrase(ADVERBS[lemma], clause, role) if lemma else []


def after_verb(clause: Clause, parts: Predicate, relative: Callable[[Clause], list[Word]]) -> list[Word]:
    """Object, recipient, complement and setting."""
    words = []
    if clause.object and not is_fronted(clause.object):
        words += _object(clause, parts.verb, relative)
    if clause.recipient and not is_pronoun(clause.recipient):
        words += [Word("à", "ADP", -1, clause.recipient, c.CASE), *noun_phrase(clause.recipient, relative)]
    words += _complement(clause, parts, relative)
    if clause.setting:
        words += setting(clause.setting, relative, parts.verb.reaches)
    return words


def _object(clause: Clause, verb: Verb, relative: Callable[[Clause], list[Word]]) -> list[Word]:
    """An object that no clitic stands for."""
    thing, is_negated = clause.object, clause.negative or clause.frequency == "never"
    if is_pronoun(thing) and _object_clitic(thing, verb):
        return []
    if verb.governs == "":
        return noun_phrase(thing, relative, is_negated)
    preposition = "à" if verb.governs == "dative" else verb.governs
    link = Word(preposition, "ADP", -1, clause, c.PREPOSITION)
    first, *rest = noun_phrase(thing, relative, is_negated and preposition == "de")
    if preposition == "de":  # one plays "du violon", not "d'un violon"
        first = first._replace(text={"un": "le", "une": "la"}.get(first.text, first.text))
    return [link, first, *rest]


def _complement(clause: Clause, parts: Predicate, relative: Callable[[Clause], list[Word]]) -> list[Word]:
    match clause.complement:
        case None:
            return []
        case Age(years) as age:
            return [Word(NUMBERS[years], "NUM", -1, age, c.NUMERAL), Word("ans", "NOUN", -1, age, c.HEAD)]
        case Mention() as mention:
            return bare_noun(mention) or noun_phrase(mention, relative)
    if parts.is_adjective:
        return []
    return [Word(predicate_adjective(clause.complement, clause.subject), "ADJ", -1, clause, c.COMPLEMENT)]
