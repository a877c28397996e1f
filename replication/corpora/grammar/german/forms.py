"""German inflection: articles, adjectives, nouns, pronouns and verbs."""

from functools import cache

from replication.corpora.grammar.clauses import Tense
from replication.corpora.grammar.german.nouns import WEAK, Noun
from replication.corpora.grammar.german.verbs import STRONG, Verb

#: Columns of the tables below: masculine, feminine, neuter, plural.
_COLUMNS = "mfnp"
CASES = ("nom", "acc", "dat", "gen")


def _table(text: str) -> dict[tuple[str, str], str]:
    """Reads four rows of cases; "-" is an empty ending."""
    lines = zip(CASES, text.strip().splitlines(), strict=True)
    cells = ((case, zip(_COLUMNS, line.split(), strict=True)) for case, line in lines)
    return {(case, gender): cell.strip("-") for case, row in cells for gender, cell in row}


#: By case and gender.
ARTICLES = _table("""
der die das die
den die das die
dem der dem den
des der des der
""")
#: Of "ein", "kein" and the possessives.
_DETERMINER_ENDINGS = _table("""
-  e  -  e
en e  -  e
em er em en
es er es er
""")
RELATIVES = _table("""
der    die   das    die
den    die   das    die
dem    der   dem    denen
dessen deren dessen deren
""")
#: Adjective endings after "der", after "ein", and after no article.
_ENDINGS = {
    "weak": _table("""
e  e  e  en
en e  e  en
en en en en
en en en en
"""),
    "mixed": _table("""
er e  es en
en e  es en
en en en en
en en en en
"""),
    "strong": _table("""
er e  es e
en e  es e
em er em en
en er en er
"""),
}
#: Nominative, accusative, dative and the stem of the possessive.
PRONOUNS = {
    "m": ("er", "ihn", "ihm", "sein"),
    "f": ("sie", "sie", "ihr", "ihr"),
    "n": ("es", "es", "ihm", "sein"),
    "p": ("sie", "sie", "ihnen", "ihr"),
    "speaker": ("ich", "mich", "mir", "mein"),
    "addressee": ("du", "dich", "dir", "dein"),
}
REFLEXIVES = {"speaker": "mich", "addressee": "dich"}
QUESTIONS = {"nom": "wer", "acc": "wen", "dat": "wem"}
_PRESENT = {
    "sein": ("bin", "bist", "ist", "sind"),
    "haben": ("habe", "hast", "hat", "haben"),
    "werden": ("werde", "wirst", "wird", "werden"),
    "können": ("kann", "kannst", "kann", "können"),
    "müssen": ("muss", "musst", "muss", "müssen"),
    "wollen": ("will", "willst", "will", "wollen"),
    "mögen": ("mag", "magst", "mag", "mögen"),
    "wissen": ("weiß", "weißt", "weiß", "wissen"),
}
_INSEPARABLE = ("be", "emp", "ent", "er", "ge", "ver", "zer")
#: Begin like an inseparable prefix but have none.
_SIMPLE = {"ernten", "bellen"}


def determiner(stem: str, case: str, gender: str) -> str:
    """A form of "ein", "kein" or a possessive."""
    return stem + _DETERMINER_ENDINGS[case, gender]


def adjective(stem: str, declension: str, case: str, gender: str) -> str:
    return stem + _ENDINGS[declension][case, gender]


def noun(entry: Noun, case: str, is_plural: bool) -> str:
    if is_plural:
        return entry.plural + ("n" if case == "dat" and not entry.plural.endswith(("n", "s")) else "")
    singular = entry.singular
    if entry.gender == "f" or case == "nom":
        return singular
    if singular in WEAK:
        return singular + ("n" if singular.endswith(("e", "er")) else "en")
    return singular + _genitive_ending(singular) if case == "gen" else singular


def _genitive_ending(noun: str) -> str:
    """ "Hundes", "Fuchses", but "Bäckers"."""
    vowels = sum(letter in "aeiouäöüy" for letter in noun.lower())
    return "es" if noun.endswith(("s", "ß", "z", "x")) or vowels == 1 else "s"


def genitive_name(name: str) -> str:
    return name + ("'" if name.endswith(("s", "z", "x")) else "s")


def _stem(infinitive: str) -> str:
    return infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]


def _linked_stem(infinitive: str) -> str:
    """The stem with the "e" that makes its ending audible: "arbeite-t", "zeichne-t"."""
    stem = _stem(infinitive)
    is_hard = stem.endswith(("n", "m")) and (stem[-2] not in "aeiouäöülrhnm" or stem[-3:-1] == "ch")
    return stem + "e" if stem.endswith(("t", "d")) or is_hard else stem


@cache
def _present(infinitive: str) -> tuple[str, str, str, str]:
    if infinitive in _PRESENT:
        return _PRESENT[infinitive]
    stem, third = _stem(infinitive), STRONG.get(infinitive, [_linked_stem(infinitive) + "t"])[0]
    first = stem[:-2] + "le" if infinitive.endswith("eln") else stem + "e"
    return first, _second(stem, third), third, infinitive


def _second(stem: str, third: str) -> str:
    if stem.endswith("t") and not third.endswith("et"):
        return third + "st"  # du hältst
    return third[:-1] + ("t" if third[-2] in "sßzx" else "st")


@cache
def _past(infinitive: str) -> tuple[str, str, str, str]:
    if infinitive not in STRONG:
        base = _linked_stem(infinitive) + "te"
    else:
        base = STRONG[infinitive][1]
    second = base + ("est" if base.endswith(("s", "ß")) else "st")
    return base, second, base, base + ("n" if base.endswith("e") else "en")


@cache
def finite(infinitive: str, tense: Tense, person: int, is_plural: bool) -> str:
    """Agrees with a subject of person 1, 2 or 3. The past is the preterite; that of "werden" is the conditional."""
    forms = _past(infinitive) if tense == "past" else _present(infinitive)
    return forms[3 if is_plural else person - 1]


def prefixed(prefix: str, form: str) -> str:
    """A form of a separable verb in one word; "fallen lassen" stays two."""
    return f"{prefix} {form}" if prefix == "fallen" else prefix + form


@cache
def participle(verb: Verb) -> str:
    infinitive = verb.infinitive
    if infinitive in STRONG:
        return prefixed(verb.prefix, STRONG[infinitive][2])
    has_prefix = infinitive.startswith(_INSEPARABLE) and infinitive not in _SIMPLE
    start = "" if has_prefix or infinitive.endswith("ieren") else "ge"
    return prefixed(verb.prefix, start + _linked_stem(infinitive) + "t")


def infinitive(verb: Verb) -> str:
    return prefixed(verb.prefix, verb.infinitive)
