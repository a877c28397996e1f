"""Puts abstract clauses into English words, each with its UPOS tag and coreference chain."""

from sparselib.corpora import english_forms as forms
from sparselib.corpora import lexicon
from sparselib.corpora.clauses import (
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
from sparselib.corpora.documents import Sentence

#: Word, tag and chain.
Token = tuple[str, str, int]

SUBJECT, OBJECT, POSSESSIVE, REFLEXIVE = range(4)
COMMA, STOP, QUOTE = (",", "PUNCT", -1), (".", "PUNCT", -1), ('"', "PUNCT", -1)
#: Time expressions that are more than an adverb, word by word with their tags.
_PHRASES = {
    phrase: [(word, tag, -1) for word, tag in zip(phrase.split(), tags.split(), strict=True)]
    for phrase, tags in {
        "in the morning": "ADP DET NOUN",
        "in the evening": "ADP DET NOUN",
        "at night": "ADP NOUN",
        "in the afternoon": "ADP DET NOUN",
        "at noon": "ADP NOUN",
        "one day": "NUM NOUN",
        "every day": "DET NOUN",
        "in winter": "ADP NOUN",
        "in summer": "ADP NOUN",
        "in spring": "ADP NOUN",
        "in autumn": "ADP NOUN",
    }.items()
}
#: Aspect or modal: the verb that expresses it, its tag, whether "to" follows, and the form of the verb after it.
_HELPERS = {
    "progressive": ("be", "AUX", False, forms.gerund),
    "perfect": ("have", "AUX", False, forms.participle),
    "prospective": ("will", "AUX", False, str),
    "can": ("can", "AUX", False, str),
    "must": ("have", "VERB", True, str),
    "want": ("want", "VERB", True, str),
}


def sentence(utterance: Utterance) -> Sentence:
    """One sentence with its capital and its final mark."""
    tokens = _utterance(utterance)
    first = 1 if tokens[0][1] == "PUNCT" else 0
    word, tag, chain = tokens[first]
    tokens[first] = (word[0].upper() + word[1:], tag, chain)
    words, tags, chains = map(list, zip(*tokens, strict=True))
    return Sentence(words, tags, chains)


def _utterance(utterance: Utterance) -> list[Token]:
    match utterance:
        case Subordination(main, conjunction, subordinate, fronted):
            dependent = [(conjunction, "SCONJ", -1), *_clause(subordinate)]
            if fronted:
                return [*dependent, COMMA, *_clause(main), STOP]
            return [*_clause(main), *dependent, STOP]
        case Coordination(first, conjunction, second):
            return [*_clause(first), COMMA, (conjunction, "CCONJ", -1), *_clause(second), STOP]
        case Quotation():
            return _quotation(utterance)
    return [*_clause(utterance), STOP]


def _quotation(quotation: Quotation) -> list[Token]:
    words = _clause(quotation.words)
    if quotation.vocative:
        words = [*_mention(quotation.vocative, SUBJECT), COMMA, *words]
    mark = "?" if quotation.words.question else "!" if quotation.exclaimed else ","
    return [QUOTE, *words, (mark, "PUNCT", -1), QUOTE, *_frame(quotation), STOP]


def _frame(quotation: Quotation) -> list[Token]:
    """Inverted ("asked Anna"), but not with a pronoun ("she asked") or an addressee ("Anna asked Tom")."""
    speaker = _mention(quotation.speaker, SUBJECT)
    person, is_plural = _agreement(quotation.speaker)
    verb = (forms.finite(quotation.verb, quotation.tense, person, is_plural), "VERB", -1)
    if quotation.addressee is None:
        return [*speaker, verb] if quotation.speaker.form == "pronoun" else [verb, *speaker]
    to = [] if quotation.verb == "ask" else [("to", "ADP", -1)]
    return [*speaker, verb, *to, *_mention(quotation.addressee, OBJECT)]


def _clause(clause: Clause) -> list[Token]:
    """Time; what is asked for or relativised; subject and verb; objects, manner, setting and content."""
    asked = {"where": [("where", "ADV", -1)], "how old": [("how", "ADV", -1), ("old", "ADJ", -1)]}
    opening = _time(clause.time) + asked.get(clause.question, [])
    if _is_fronted(clause.object):
        opening += _noun_phrase(clause.object, OBJECT)
    subject = _noun_phrase(clause.subject, SUBJECT)
    finite, rest = _verbs(clause)
    if clause.question:
        return [*opening, finite, *subject, *rest, *_after_verb(clause)]
    if clause.frequency and finite[1] == "VERB":
        subject.append((clause.frequency, "ADV", -1))
    return [*opening, *subject, finite, *rest, *_after_verb(clause)]


def _is_fronted(phrase: NounPhrase | None) -> bool:
    return isinstance(phrase, Mention) and phrase.form in ("relative", "question")


def _time(time: str | None) -> list[Token]:
    if time is None:
        return []
    return [*_PHRASES[time], COMMA] if time in _PHRASES else [(time, "ADV", -1)]


def _verbs(clause: Clause) -> tuple[Token, list[Token]]:
    """The finite verb, and what else belongs to the predicate before its objects."""
    verb, *particle = clause.verb.split()
    tag = "AUX" if verb == "be" else "VERB"
    helper = _HELPERS.get(clause.modal or clause.aspect)
    rest = []
    if helper:
        first, first_tag, has_to, form = helper
        rest = [("to", "PART", -1)] if has_to else []
        rest.append((form(verb), tag, -1))
    else:
        first, first_tag = verb, tag
    if first_tag == "VERB" and (clause.negative or clause.question):
        rest.insert(0, (first, first_tag, -1))
        first, first_tag = "do", "AUX"
    if clause.frequency and first_tag == "AUX":
        rest.insert(0, (clause.frequency, "ADV", -1))
    if clause.negative:
        rest.insert(0, ("not", "PART", -1))
    rest += [(word, "ADP", -1) for word in particle]
    person, is_plural = _agreement(clause.subject)
    return (forms.finite(first, clause.tense, person, is_plural), first_tag, -1), rest


def _agreement(subject: NounPhrase) -> tuple[int, bool]:
    """Person and whether plural."""
    if isinstance(subject, Pair):
        return 3, True
    person = {"speaker": 1, "addressee": 2}.get(subject.form, 3)
    return person, subject.entity.plural


def _after_verb(clause: Clause) -> list[Token]:
    tokens = _objects(clause) + _complement(clause.complement)
    if clause.manner:
        tokens.append((clause.manner, "ADV", -1))
    if clause.setting:
        tokens += _setting(clause.setting)
    if clause.content:
        tokens += [("that", "SCONJ", -1), *_clause(clause.content)]
    return tokens


def _objects(clause: Clause) -> list[Token]:
    """What is new comes last: "gave Tom a cake", but "showed the red kettle to Tom"."""
    if clause.reflexive:
        return _mention(clause.subject, REFLEXIVE)
    if clause.object is None or _is_fronted(clause.object):
        return []
    thing = _noun_phrase(clause.object, OBJECT)
    if clause.recipient is None:
        return thing
    recipient = _noun_phrase(clause.recipient, OBJECT)
    if clause.object.form == "indefinite":
        return recipient + thing
    return [*thing, ("to", "ADP", -1), *recipient]


def _complement(complement: str | Age | Mention | None) -> list[Token]:
    match complement:
        case None:
            return []
        case Age(years):
            return [(years, "NUM", -1), ("years", "NOUN", -1), ("old", "ADJ", -1)]
        case Mention():
            return _mention(complement, OBJECT)
    return [(complement, "ADJ", -1)]


def _setting(setting: Setting) -> list[Token]:
    return [(setting.relation, "ADP", -1), *_mention(setting.place, OBJECT)]


def _noun_phrase(phrase: NounPhrase, case: int) -> list[Token]:
    """Of a pair, both members keep their own chains, so that the conjunction has to stand for the group."""
    if isinstance(phrase, Pair):
        joint = ("and", "CCONJ", phrase.entity.chain)
        return [*_mention(phrase.first, case), joint, *_mention(phrase.second, case)]
    return _mention(phrase, case)


def _mention(mention: Mention, case: int) -> list[Token]:
    """All words of a mention have the chain of its entity, save those of an owner or a relative clause in it."""
    entity, form = mention.entity, mention.form
    chain = entity.chain
    if case == REFLEXIVE or form in ("pronoun", "speaker", "addressee"):
        kind = form if form in forms.PRONOUNS else "plural" if entity.plural else entity.gender
        return [(forms.PRONOUNS[kind][case], "PRON", chain)]
    if form in ("relative", "question"):
        is_person = entity.plural or entity.gender != "neuter" or form == "question"
        return [("who" if is_person else "that", "PRON", chain)]
    name = (entity.name, "PROPN", chain)
    if form == "name":
        tokens = [name]
    elif form == "appositive":
        tokens = [name, COMMA, *_description(mention), COMMA]
    elif form == "named":
        tokens = [*_description(mention), ("named", "VERB", chain), name]
    else:
        tokens = _description(mention)
    if case == POSSESSIVE:
        tokens.append(("'" if tokens[-1][0].endswith("s") and entity.plural else "'s", "PART", chain))
    return tokens


def _description(mention: Mention) -> list[Token]:
    """Determiner or owner, numeral, adjective, noun, relative clause."""
    entity, chain = mention.entity, mention.entity.chain
    noun = forms.plural(entity.noun) if entity.plural else entity.noun
    tokens = [(noun, "NOUN", chain)]
    if mention.adjective:
        tokens.insert(0, (mention.adjective, "ADJ", chain))
    if entity.count and (mention.form == "indefinite" or not mention.adjective):
        tokens.insert(0, (entity.count, "NUM", chain))
    if mention.owner:
        tokens = _mention(mention.owner, POSSESSIVE) + tokens
    elif mention.form == "definite":
        tokens.insert(0, ("the", "DET", chain))
    elif not entity.plural and entity.noun not in lexicon.MASS:
        tokens.insert(0, (forms.article(tokens[0][0]), "DET", chain))
    if mention.relative:
        tokens += _clause(mention.relative)
    return tokens
