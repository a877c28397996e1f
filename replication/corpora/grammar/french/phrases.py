"""French noun phrases, word by word: determiner, adjectives and noun agree in gender and number."""

from collections.abc import Callable

from replication.corpora.grammar import concepts as c
from replication.corpora.grammar import lexicon
from replication.corpora.grammar.clauses import Clause, Mention, NounPhrase, Pair, Setting
from replication.corpora.grammar.concepts import Word
from replication.corpora.grammar.french import forms
from replication.corpora.grammar.french.lexicon import ADJECTIVES, CONJUNCTIONS, INVARIABLE, NUMBERS, PREPOSED, SETTINGS
from replication.corpora.grammar.french.nouns import gender, is_plural, noun

COMMA = Word(",", "PUNCT")
PRONOMINAL = ("pronoun", "speaker", "addressee")
#: Columns of the pronouns.
SUBJECT, DIRECT, DATIVE, TONIC = range(4)
#: Nouns that are not counted but have the definite article in general.
_GENERIC = {"law", "grammar", "history"}
#: Puts a relative clause into words.
Relative = Callable[[Clause], list[Word]]


def is_pronoun(phrase: NounPhrase | None) -> bool:
    return isinstance(phrase, Mention) and phrase.form in PRONOMINAL


def is_thing(mention: Mention) -> bool:
    entity = mention.entity
    return not entity.plural and entity.noun not in lexicon.PROFESSIONS and entity.noun not in lexicon.ANIMALS


def agreement(phrase: NounPhrase) -> tuple[str, bool]:
    """Gender and whether plural."""
    if isinstance(phrase, Pair):
        return ("f" if gender(phrase.first.entity) == gender(phrase.second.entity) == "f" else "m"), True
    return gender(phrase.entity), is_plural(phrase.entity)


def person(subject: NounPhrase) -> tuple[int, bool]:
    """Person and whether plural."""
    if isinstance(subject, Pair):
        return 3, True
    return {"speaker": 1, "addressee": 2}.get(subject.form, 3), is_plural(subject.entity)


def pronoun(mention: Mention, column: int) -> Word:
    kind = mention.form if mention.form in forms.PRONOUNS else agreement(mention)
    return Word(forms.PRONOUNS[kind][column], "PRON", mention.entity.chain, mention, c.HEAD)


def noun_phrase(phrase: NounPhrase, relative: Relative, negative: bool = False, column: int = TONIC) -> list[Word]:
    """``negative`` turns an indefinite article into "de"; ``column`` is the form of a pronoun."""
    if isinstance(phrase, Pair):
        joint = Word(CONJUNCTIONS["and"][0][0], "CCONJ", phrase.entity.chain, phrase, c.CONJUNCTION)
        return [*noun_phrase(phrase.first, relative), joint, *noun_phrase(phrase.second, relative)]
    return _mention(phrase, relative, negative, column)


def setting(setting: Setting, relative: Relative, reaches: bool) -> list[Word]:
    """A preposition with its place: where something happens, or with ``reaches`` how far it goes."""
    texts = SETTINGS[setting.relation, setting.place.entity.noun]
    if reaches and setting.relation == "to":
        texts = ["jusqu'", "à"]
    words = [Word(text, "ADP", -1, setting, c.PREPOSITION) for text in texts]
    return words + noun_phrase(setting.place, relative)


def bare_noun(mention: Mention) -> list[Word] | None:
    """A profession without an article ("Anna est boulangère"), unless it is described further."""
    if mention.entity.noun not in lexicon.PROFESSIONS or mention.adjective or mention.relative:
        return None
    return _noun(mention)


def _mention(mention: Mention, relative: Relative, negative: bool, column: int) -> list[Word]:
    """All words of a mention have the chain of its entity, save those of an owner or a relative clause in it."""
    entity, form = mention.entity, mention.form
    chain = entity.chain
    if form in PRONOMINAL:
        return [pronoun(mention, column)]
    if form in ("relative", "question"):
        is_direct = form == "relative" and column == DIRECT
        return [Word("que" if is_direct else "qui", "PRON", chain, mention, c.HEAD)]
    name = Word(entity.name, "PROPN", chain, mention, c.NAME)
    if form == "name":
        return [name]
    description = _description(mention, relative, negative)
    if form == "appositive":
        return [name, COMMA, *description, COMMA]
    if form == "named":
        named = forms.participle("nommer", *agreement(mention))
        return [*description, Word(named, "VERB", chain, mention, c.NAMED), name]
    return description


def _noun(mention: Mention) -> list[Word]:
    entry, entity = noun(mention.entity), mention.entity
    head, *rest = (entry.plural if is_plural(entity) else entry.singular).split()
    return [
        Word(head, "NOUN", entity.chain, mention, c.HEAD),
        *(Word(text, "ADP" if text in ("de", "à") else "NOUN", entity.chain, mention, c.HEAD) for text in rest),
    ]


def _description(mention: Mention, relative: Relative, negative: bool) -> list[Word]:
    """Determiner, numeral, noun between adjectives, owner, relative clause."""
    entity, chain = mention.entity, mention.entity.chain
    words = _noun(mention)
    if mention.adjective:
        is_before = mention.adjective in PREPOSED
        text = _adjective(mention.adjective, mention, words[0].text if is_before else "")
        words.insert(0 if is_before else len(words), Word(text, "ADJ", chain, mention, c.ADJECTIVE))
    if entity.count and (mention.form == "indefinite" or not mention.adjective):
        words.insert(0, Word(NUMBERS[entity.count], "NUM", chain, mention, c.NUMERAL))
    words = _determiner(mention, words[0], negative) + words
    if mention.owner and mention.owner.form not in PRONOMINAL:
        owner = mention.owner
        link = Word("de", "ADP", owner.entity.chain, owner, c.CASE)
        words += [link, *noun_phrase(owner, relative)]
    if mention.relative:
        words += relative(mention.relative)
    return words


def _adjective(lemma: str, phrase: NounPhrase, following: str) -> str:
    kind, is_many = agreement(phrase)
    entry = ADJECTIVES[lemma]
    return entry.masculine if lemma in INVARIABLE else forms.adjective(entry, kind, is_many, following)


def predicate(lemma: str, subject: NounPhrase) -> str:
    """An adjective that is said of the subject."""
    return _adjective(lemma, subject, "")


def _determiner(mention: Mention, following: Word, negative: bool) -> list[Word]:
    """Article, partitive or possessive; none before the number of something new."""
    entity, chain, owner = mention.entity, mention.entity.chain, mention.owner
    kind, is_many = agreement(mention)
    column = 2 if is_many else 1 if kind == "f" else 0
    if owner and owner.form in PRONOMINAL:
        holder = owner.form if owner.form in forms.POSSESSIVES else is_plural(owner.entity)
        texts = forms.POSSESSIVES[holder]
        is_masculine = column == 1 and forms.begins_with_vowel(following.text)
        return [Word(texts[0 if is_masculine else column], "DET", owner.entity.chain, owner, c.HEAD)]
    if owner or mention.form == "definite" or entity.noun in _GENERIC:
        return [Word(("le", "la", "les")[column], "DET", chain, mention, c.DETERMINER)]
    if following.tag == "NUM":
        return []
    is_mass = entity.noun in lexicon.MASS
    if negative or (is_many and following.tag == "ADJ"):
        return [Word("de", "DET", chain, mention, c.DETERMINER)]
    if is_mass and not is_many:
        return _partitive(chain, kind, following.text)
    return [Word(("un", "une", "des")[column], "DET", chain, mention, c.DETERMINER)]


def _partitive(chain: int, kind: str, following: str) -> list[Word]:
    if kind == "m" and not forms.begins_with_vowel(following):
        return [Word("du", "DET", chain)]
    return [Word("de", "DET", chain), Word("la", "DET", chain)]
