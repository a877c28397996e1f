"""French inflection, and what neighbouring words do to each other: elision and contraction."""

from functools import cache
from typing import Literal

from replication.corpora.grammar.concepts import Word
from replication.corpora.grammar.french.lexicon import Adjective
from replication.corpora.grammar.french.nouns import plural
from replication.corpora.grammar.french.verbs import IRREGULAR

Form = Literal["present", "imparfait", "future", "conditional"]

_ENDINGS = {
    "imparfait": ("ais", "ais", "ait", "aient"),
    "future": ("ai", "as", "a", "ont"),
    "conditional": ("ais", "ais", "ait", "aient"),
}
#: Double their consonant before a silent "e"; others take a grave accent.
_DOUBLING = {"appeler", "jeter", "cacheter"}
#: Subject, direct and indirect object before the verb, after a preposition, by person or (gender, plural).
PRONOUNS = {
    ("m", False): ("il", "le", "lui", "lui"),
    ("f", False): ("elle", "la", "lui", "elle"),
    ("m", True): ("ils", "les", "leur", "eux"),
    ("f", True): ("elles", "les", "leur", "elles"),
    "speaker": ("je", "me", "me", "moi"),
    "addressee": ("tu", "te", "te", "toi"),
}
#: Before a masculine, a feminine and a plural noun, by person or by whether the owner is plural.
POSSESSIVES = {
    "speaker": ("mon", "ma", "mes"),
    "addressee": ("ton", "ta", "tes"),
    False: ("son", "sa", "ses"),
    True: ("leur", "leur", "leurs"),
}
_ELIDED = set("le la de ne que se me te je ce".split())
#: Words in "h" that do not elide.
_ASPIRATED = ("hibou", "hériss", "hareng", "huit", "haut")
_CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}


def begins_with_vowel(word: str) -> bool:
    if word in ("y", "onze"):
        return word == "y"
    return word[0].lower() in "aeiouàâéèêëîïôœ" or (word[0] in "hH" and not word.lower().startswith(_ASPIRATED))


def join(words: list[Word]) -> list[Word]:
    """Contracts "de le" to "du", then elides "la" before a vowel to "l'". A contraction keeps the preposition's concept."""
    joined: list[Word] = []
    for position, word in enumerate(words):
        following = words[position + 1].text if position + 1 < len(words) else "."
        if word.tag == "DET" and joined and joined[-1].text in ("de", "à") and joined[-1].tag == "ADP":
            before = joined[-1]
            if before.text == "de" and word.text in ("des", "de"):
                continue
            is_elided = word.text == "le" and begins_with_vowel(following)
            if not is_elided and (both := _CONTRACTED.get((before.text, word.text))):
                joined[-1] = before._replace(text=both)
                continue
        if begins_with_vowel(following) and (
            word.text in _ELIDED or (word.text == "si" and following in ("il", "ils"))
        ):
            word = word._replace(text=word.text[:-1] + "'")
        joined.append(word)
    return joined


def adjective(entry: Adjective, gender: str, is_plural: bool, following: str = "") -> str:
    """Agrees with its noun; ``following`` is the next word if that is the noun."""
    if gender == "f":
        return entry.feminine + ("s" if is_plural else "")
    if is_plural:
        return plural(entry.masculine)
    return entry.before_vowel if following and begins_with_vowel(following) else entry.masculine


def participle(infinitive: str, gender: str = "m", is_plural: bool = False) -> str:
    masculine = _participle(infinitive)
    ending = ("e" if gender == "f" else "") + ("s" if is_plural and (gender == "f" or masculine[-1] != "s") else "")
    return ("du" if ending and masculine == "dû" else masculine) + ending


@cache
def _participle(infinitive: str) -> str:
    if infinitive in IRREGULAR:
        return IRREGULAR[infinitive][5]
    return infinitive[:-2] + {"er": "é", "ir": "i", "re": "u"}[infinitive[-2:]]


def _before_silent_e(infinitive: str) -> str:
    """The stem of a verb in "-er" in "il achète", "il nettoie", "il appelle"."""
    stem = infinitive[:-2]
    if infinitive in _DOUBLING:
        return stem + stem[-1]
    if stem.endswith("y"):
        return stem[:-1] + "i"
    if stem[-2:-1] == "e" and stem[-1] not in "aeioué":
        return stem[:-2] + "è" + stem[-1]
    return stem


@cache
def _present(infinitive: str) -> tuple[str, str, str, str]:
    if infinitive in IRREGULAR:
        return tuple(IRREGULAR[infinitive][:4])
    stem, group = infinitive[:-2], infinitive[-2:]
    if group == "ir":
        return stem + "is", stem + "is", stem + "it", stem + "issent"
    if group == "re":
        return stem + "s", stem + "s", stem, stem + "ent"
    stem = _before_silent_e(infinitive)
    if stem[-2:-1] == "é" and stem[-1] not in "aeiou":
        stem = stem[:-2] + "è" + stem[-1]
    return stem + "e", stem + "es", stem + "e", stem + "ent"


@cache
def _stem(infinitive: str, form: Form) -> str:
    """Of the imparfait, or of the future and the conditional."""
    if infinitive in IRREGULAR:
        return IRREGULAR[infinitive][4 if form == "imparfait" else 6]
    stem, group = infinitive[:-2], infinitive[-2:]
    if form != "imparfait":
        return {"er": _before_silent_e(infinitive) + "er", "ir": infinitive, "re": infinitive[:-1]}[group]
    if group == "ir":
        return stem + "iss"
    if stem.endswith("g") and group == "er":
        return stem + "e"
    return stem[:-1] + "ç" if stem.endswith("c") else stem


@cache
def finite(infinitive: str, form: Form, person: int, is_plural: bool) -> str:
    """Agrees with a subject of person 1, 2 or 3."""
    index = 3 if is_plural else person - 1
    if form == "present":
        return _present(infinitive)[index]
    return _stem(infinitive, form) + _ENDINGS[form][index]
