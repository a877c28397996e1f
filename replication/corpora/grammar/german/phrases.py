"""German noun phrases, word by word: determiner, adjective and noun agree in gender, number and case."""

from collections.abc import Callable

from replication.corpora.grammar import concepts as c
from replication.corpora.grammar import lexicon
from replication.corpora.grammar.clauses import Clause, Entity, Mention, NounPhrase, Pair, Setting
from replication.corpora.grammar.concepts import Word
from replication.corpora.grammar.german import forms
from replication.corpora.grammar.german.lexicon import ADJECTIVES, CONJUNCTIONS, CONTRACTIONS, NUMBERS, SETTINGS
from replication.corpora.grammar.german.nouns import gender, is_plural, noun

COMMA = Word(",", "PUNCT")
PRONOMINAL = ("pronoun", "speaker", "addressee")
#: Nouns that are not counted but have an article all the same.
_GENERIC = {"law"}
#: Puts a relative clause into words.
Relative = Callable[[Clause], list[Word]]


def is_pronoun(phrase: NounPhrase | None) -> bool:
    return isinstance(phrase, Mention) and phrase.form in PRONOMINAL


def is_indefinite(phrase: NounPhrase) -> bool:
    """Whether "kein" negates it."""
    if isinstance(phrase, Pair):
        return False
    return phrase.form in ("indefinite", "named") and not phrase.owner and phrase.entity.noun not in _GENERIC


def agreement(subject: NounPhrase) -> tuple[int, bool]:
    """Person and whether plural."""
    if isinstance(subject, Pair):
        return 3, True
    return {"speaker": 1, "addressee": 2}.get(subject.form, 3), is_plural(subject.entity)


def noun_phrase(phrase: NounPhrase, case: str, relative: Relative, negative: bool = False) -> list[Word]:
    """In the case "nom", "acc", "dat" or "gen"; ``negative`` makes it begin with "kein"."""
    if isinstance(phrase, Pair):
        joint = Word(CONJUNCTIONS["and"][0], "CCONJ", phrase.entity.chain, phrase, c.CONJUNCTION)
        return [*_mention(phrase.first, case, relative), joint, *_mention(phrase.second, case, relative)]
    return _mention(phrase, case, relative, negative)


def setting(setting: Setting, relative: Relative) -> list[Word]:
    """A preposition with its place; most prepositions contract with "dem", "der" and "das"."""
    preposition, case = SETTINGS[setting.relation, setting.place.entity.noun]
    head = Word(preposition, "ADP", -1, setting, c.PREPOSITION)
    return contract([head, *noun_phrase(setting.place, case, relative)])


def contract(words: list[Word]) -> list[Word]:
    """Joins a preposition with the article after it, where they join."""
    preposition, article, *rest = words
    contracted = CONTRACTIONS.get((preposition.text, article.text)) if article.tag == "DET" else None
    return [preposition._replace(text=contracted), *rest] if contracted else words


def prepositional(preposition: str, phrase: NounPhrase, case: str, relative: Relative, node: Clause) -> list[Word]:
    """An object with its preposition; of a thing that is only pointed at, "daran" or "damit"."""
    if is_pronoun(phrase) and is_thing(phrase.entity):
        link = "dar" if preposition[0] in "aeiou" else "da"
        return [Word(link + preposition, "ADV", phrase.entity.chain, phrase, c.HEAD)]
    words = [Word(preposition, "ADP", -1, node, c.PREPOSITION), *noun_phrase(phrase, case, relative)]
    return contract(words) if case == "dat" else words


def is_thing(entity: Entity) -> bool:
    return not entity.plural and entity.noun not in lexicon.PROFESSIONS and entity.noun not in lexicon.ANIMALS


def bare_noun(mention: Mention) -> list[Word] | None:
    """A profession without an article ("Anna ist Bäckerin"), unless it is described further."""
    if mention.entity.noun not in lexicon.PROFESSIONS or mention.adjective or mention.relative:
        return None
    return [_noun(mention, "nom")]


def _mention(mention: Mention, case: str, relative: Relative, negative: bool = False) -> list[Word]:
    """All words of a mention have the chain of its entity, save those of an owner or a relative clause in it."""
    entity, form = mention.entity, mention.form
    chain = entity.chain
    if form in PRONOMINAL:
        kind = gender(entity) if form == "pronoun" else form
        return [Word(forms.PRONOUNS[kind][forms.CASES.index(case)], "PRON", chain, mention, c.HEAD)]
    if form == "relative":
        return [Word(forms.RELATIVES[case, gender(entity)], "PRON", chain, mention, c.HEAD)]
    if form == "question":
        return [Word(forms.QUESTIONS[case], "PRON", chain, mention, c.HEAD)]
    name = Word(entity.name, "PROPN", chain, mention, c.NAME)
    if form == "name":
        return [name]
    description = _description(mention, case, relative, negative)
    if form == "appositive":
        return [name, COMMA, *description, COMMA]
    if form == "named":
        return [*description, Word("namens", "ADP", chain, mention, c.NAMED), name]
    return description


def _noun(mention: Mention, case: str) -> Word:
    entity = mention.entity
    text = forms.noun(noun(entity), case, is_plural(entity))
    return Word(text, "NOUN", entity.chain, mention, c.HEAD)


def _description(mention: Mention, case: str, relative: Relative, negative: bool) -> list[Word]:
    """Determiner or owner, numeral, adjective, noun, owner in the genitive, relative clause."""
    entity, chain = mention.entity, mention.entity.chain
    kind = gender(entity)
    words, declension = _determiner(mention, case, kind, negative)
    if entity.count and (mention.form == "indefinite" or not mention.adjective):
        words.append(Word(NUMBERS[entity.count], "NUM", chain, mention, c.NUMERAL))
    if mention.adjective:
        stem = ADJECTIVES[mention.adjective][1]
        adjective = forms.adjective(stem, declension, case, kind)
        words.append(Word(adjective, "ADJ", chain, mention, c.ADJECTIVE))
    words.append(_noun(mention, case))
    if mention.owner and mention.owner.form not in (*PRONOMINAL, "name"):
        words += _mention(mention.owner, "gen", relative)
    if mention.relative:
        words += [COMMA, *relative(mention.relative), COMMA]
    return words


def _determiner(mention: Mention, case: str, kind: str, negative: bool) -> tuple[list[Word], str]:
    """The determiner, if any, and the declension of an adjective after it."""
    entity, owner = mention.entity, mention.owner
    if owner and owner.form == "name":
        name = forms.genitive_name(owner.entity.name)
        return [Word(name, "PROPN", owner.entity.chain, owner, c.NAME)], "strong"
    if owner and owner.form in PRONOMINAL:
        holder = gender(owner.entity) if owner.form == "pronoun" else owner.form
        text = forms.determiner(forms.PRONOUNS[holder][3], case, kind)
        return [Word(text, "DET", owner.entity.chain, owner, c.HEAD)], "mixed"
    if not is_indefinite(mention) and mention.form != "appositive":
        return [Word(forms.ARTICLES[case, kind], "DET", entity.chain, mention, c.DETERMINER)], "weak"
    if negative:
        return [Word(forms.determiner("kein", case, kind), "DET", entity.chain, mention, c.NEGATION)], "mixed"
    if kind == "p" or entity.noun in lexicon.MASS:
        return [], "strong"
    return [Word(forms.determiner("ein", case, kind), "DET", entity.chain, mention, c.DETERMINER)], "mixed"
