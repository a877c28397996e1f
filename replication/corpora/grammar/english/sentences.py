"""Puts abstract clauses into English words, each with its UPOS tag, its coreference chain and its concept."""

from replication.corpora.documents import Sentence
from replication.corpora.grammar import concepts as c
from replication.corpora.grammar import lexicon
from replication.corpora.grammar.clauses import (
    Age,
    Clause,
    Coordination,
    Mention,
    NounPhrase,
    Pair,
    Quotation,
    Setting,
    Subordination,
    Utterance,
)
from replication.corpora.grammar.concepts import Word
from replication.corpora.grammar.english import forms

SUBJECT, OBJECT, POSSESSIVE, REFLEXIVE = range(4)
COMMA, STOP, QUOTE = Word(",", "PUNCT"), Word(".", "PUNCT"), Word('"', "PUNCT")


def sentence(utterance: Utterance, numbers: dict[int, int] | None = None) -> Sentence:
    """One sentence with its capital and its final mark, and with concepts if the nodes of the utterance have numbers."""
    return c.sentence(_utterance(utterance), numbers)


def _utterance(utterance: Utterance) -> list[Word]:
    match utterance:
        case Subordination(main, conjunction, subordinate, fronted):
            dependent = [Word(conjunction, "SCONJ", -1, utterance, c.CONJUNCTION), *_clause(subordinate)]
            if fronted:
                return [*dependent, COMMA, *_clause(main), STOP]
            return [*_clause(main), *dependent, STOP]
        case Coordination(first, conjunction, second):
            joint = Word(conjunction, "CCONJ", -1, utterance, c.CONJUNCTION)
            return [*_clause(first), COMMA, joint, *_clause(second), STOP]
        case Quotation():
            return _quotation(utterance)
    return [*_clause(utterance), STOP]


def _quotation(quotation: Quotation) -> list[Word]:
    words = _clause(quotation.words)
    if quotation.vocative:
        words = [*_mention(quotation.vocative, SUBJECT), COMMA, *words]
    mark = "?" if quotation.words.question else "!" if quotation.exclaimed else ","
    return [QUOTE, *words, Word(mark, "PUNCT"), QUOTE, *_frame(quotation), STOP]


def _frame(quotation: Quotation) -> list[Word]:
    """Inverted ("asked Anna"), but not with a pronoun ("she asked") or an addressee ("Anna asked Tom")."""
    speaker = _mention(quotation.speaker, SUBJECT)
    person, is_plural = _agreement(quotation.speaker)
    finite = forms.finite(quotation.verb, quotation.tense, person, is_plural)
    verb = Word(finite, "VERB", -1, quotation, c.VERB)
    if quotation.addressee is None:
        return [*speaker, verb] if quotation.speaker.form == "pronoun" else [verb, *speaker]
    to = [] if quotation.verb == "ask" else [Word("to", "ADP", -1, quotation.addressee, c.CASE)]
    return [*speaker, verb, *to, *_mention(quotation.addressee, OBJECT)]


def _clause(clause: Clause) -> list[Word]:
    """Time; what is asked for or relativised; subject and verb; objects, manner, setting and content."""
    opening = _time(clause) + _asked(clause)
    if _is_fronted(clause.object):
        opening += _noun_phrase(clause.object, OBJECT)
    subject = _noun_phrase(clause.subject, SUBJECT)
    finite, rest = _verbs(clause)
    if clause.question:
        return [*opening, finite, *subject, *rest, *_after_verb(clause)]
    if clause.frequency and finite[1] == "VERB":
        subject.append(Word(clause.frequency, "ADV", -1, clause, c.FREQUENCY))
    return [*opening, *subject, finite, *rest, *_after_verb(clause)]


def _is_fronted(phrase: NounPhrase | None) -> bool:
    return isinstance(phrase, Mention) and phrase.form in ("relative", "question")


def _time(clause: Clause) -> list[Word]:
    if clause.time is None:
        return []
    if clause.time not in forms.TIMES:
        return [Word(clause.time, "ADV", -1, clause, c.TIME)]
    return [*c.phrase(forms.TIMES[clause.time], clause, c.TIME), COMMA]


def _asked(clause: Clause) -> list[Word]:
    match clause.question:
        case "where":
            return [Word("where", "ADV", -1, clause, c.QUESTION)]
        case "how old":
            return [Word("how", "ADV", -1, clause, c.QUESTION), Word("old", "ADJ", -1, clause, c.COMPLEMENT)]
    return []


def _verbs(clause: Clause) -> tuple[Word, list[Word]]:
    """The finite verb, and what else belongs to the predicate before its objects."""
    verb, *particle = clause.verb.split()
    tag = "AUX" if verb == "be" else "VERB"
    helper = forms.HELPERS.get(clause.modal or clause.aspect)
    rest = []
    if helper:
        first, first_tag, has_to, form = helper
        role = c.HELPER
        rest = [Word("to", "PART")] if has_to else []
        rest.append(Word(form(verb), tag, -1, clause, c.VERB))
    else:
        first, first_tag, role = verb, tag, c.VERB
    if first_tag == "VERB" and (clause.negative or clause.question):
        rest.insert(0, Word(first, first_tag, -1, clause, role))
        first, first_tag = "do", "AUX"
    if clause.frequency and first_tag == "AUX":
        rest.insert(0, Word(clause.frequency, "ADV", -1, clause, c.FREQUENCY))
    if clause.negative:
        rest.insert(0, Word("not", "PART", -1, clause, c.NEGATION))
    rest += [Word(word, "ADP", -1, clause, c.PREPOSITION) for word in particle]
    finite = forms.finite(first, clause.tense, *_agreement(clause.subject))
    is_auxiliary = first == "do"
    return Word(finite, first_tag, -1, None if is_auxiliary else clause, role), rest


def _agreement(subject: NounPhrase) -> tuple[int, bool]:
    """Person and whether plural."""
    if isinstance(subject, Pair):
        return 3, True
    person = {"speaker": 1, "addressee": 2}.get(subject.form, 3)
    return person, subject.entity.plural


def _after_verb(clause: Clause) -> list[Word]:
    words = _objects(clause) + _complement(clause)
    if clause.manner:
        words.append(Word(clause.manner, "ADV", -1, clause, c.MANNER))
    if clause.setting:
        words += _setting(clause.setting)
    if clause.content:
        words += [Word("that", "SCONJ", -1, clause, c.CONJUNCTION), *_clause(clause.content)]
    return words


def _objects(clause: Clause) -> list[Word]:
    """What is new comes last: "gave Tom a cake", but "showed the red kettle to Tom"."""
    if clause.reflexive:
        return _reflexive(clause)
    if clause.object is None or _is_fronted(clause.object):
        return []
    thing = _noun_phrase(clause.object, OBJECT)
    if clause.recipient is None:
        return thing
    recipient = _noun_phrase(clause.recipient, OBJECT)
    if clause.object.form == "indefinite":
        return recipient + thing
    return [*thing, Word("to", "ADP", -1, clause.recipient, c.CASE), *recipient]


def _reflexive(clause: Clause) -> list[Word]:
    entity = clause.subject.entity
    return [Word(_pronoun(clause.subject, REFLEXIVE), "PRON", entity.chain, clause, c.REFLEXIVE)]


def _complement(clause: Clause) -> list[Word]:
    match clause.complement:
        case None:
            return []
        case Age(years) as age:
            numeral, head = Word(years, "NUM", -1, age, c.NUMERAL), Word("years", "NOUN", -1, age, c.HEAD)
            return [numeral, head, Word("old", "ADJ", -1, age, c.ADJECTIVE)]
        case Mention() as mention:
            return _mention(mention, OBJECT)
    return [Word(clause.complement, "ADJ", -1, clause, c.COMPLEMENT)]


def _setting(setting: Setting) -> list[Word]:
    return [Word(setting.relation, "ADP", -1, setting, c.PREPOSITION), *_mention(setting.place, OBJECT)]


def _noun_phrase(phrase: NounPhrase, case: int) -> list[Word]:
    """Of a pair, both members keep their own chains, so that the conjunction has to stand for the group."""
    if isinstance(phrase, Pair):
        joint = Word("and", "CCONJ", phrase.entity.chain, phrase, c.CONJUNCTION)
        return [*_mention(phrase.first, case), joint, *_mention(phrase.second, case)]
    return _mention(phrase, case)


def _pronoun(phrase: NounPhrase, case: int) -> str:
    form, entity = getattr(phrase, "form", "pronoun"), phrase.entity
    kind = form if form in forms.PRONOUNS else "plural" if entity.plural else entity.gender
    return forms.PRONOUNS[kind][case]


def _mention(mention: Mention, case: int) -> list[Word]:
    """All words of a mention have the chain of its entity, save those of an owner or a relative clause in it."""
    entity, form = mention.entity, mention.form
    chain = entity.chain
    if form in ("pronoun", "speaker", "addressee"):
        return [Word(_pronoun(mention, case), "PRON", chain, mention, c.HEAD)]
    if form in ("relative", "question"):
        is_person = entity.plural or entity.gender != "neuter" or form == "question"
        return [Word("who" if is_person else "that", "PRON", chain, mention, c.HEAD)]
    name = Word(entity.name, "PROPN", chain, mention, c.NAME)
    if form == "name":
        words = [name]
    elif form == "appositive":
        words = [name, COMMA, *_description(mention), COMMA]
    elif form == "named":
        words = [*_description(mention), Word("named", "VERB", chain, mention, c.NAMED), name]
    else:
        words = _description(mention)
    if case == POSSESSIVE:
        mark = "'" if words[-1].text.endswith("s") and entity.plural else "'s"
        words.append(Word(mark, "PART", chain, mention, c.CASE))
    return words


def _description(mention: Mention) -> list[Word]:
    """Determiner or owner, numeral, adjective, noun, relative clause."""
    entity, chain = mention.entity, mention.entity.chain
    noun = forms.plural(entity.noun) if entity.plural else entity.noun
    words = [Word(noun, "NOUN", chain, mention, c.HEAD)]
    if mention.adjective:
        words.insert(0, Word(mention.adjective, "ADJ", chain, mention, c.ADJECTIVE))
    if entity.count and (mention.form == "indefinite" or not mention.adjective):
        words.insert(0, Word(entity.count, "NUM", chain, mention, c.NUMERAL))
    if mention.owner:
        words = _mention(mention.owner, POSSESSIVE) + words
    elif mention.form == "definite":
        words.insert(0, Word("the", "DET", chain, mention, c.DETERMINER))
    elif not entity.plural and entity.noun not in lexicon.MASS:
        words.insert(0, Word(forms.article(words[0].text), "DET", chain, mention, c.DETERMINER))
    if mention.relative:
        words += _clause(mention.relative)
    return words
