"""English inflection: plurals, verb forms, articles and pronouns."""

from functools import cache

from replication.corpora.grammar.clauses import Tense

#: Past and past participle of the irregular verbs.
_IRREGULAR = {
    verb: (past, participle)
    for verb, past, participle in (
        line.split()
        for line in """
bend bent bent
blow blew blown
break broke broken
bring brought brought
build built built
buy bought bought
catch caught caught
come came come
creep crept crept
cut cut cut
dig dug dug
draw drew drawn
dream dreamt dreamt
drink drank drunk
eat ate eaten
feed fed fed
fall fell fallen
find found found
fly flew flown
forget forgot forgotten
give gave given
go went gone
have had had
hear heard heard
hide hid hidden
hold held held
keep kept kept
know knew known
lie lay lain
light lit lit
lose lost lost
make made made
meet met met
read read read
ride rode ridden
rise rose risen
run ran run
saw sawed sawn
say said said
see saw seen
set set set
sell sold sold
send sent sent
sew sewed sewn
shake shook shaken
shear sheared shorn
shine shone shone
show showed shown
sing sang sung
sit sat sat
sleep slept slept
spin spun spun
stand stood stood
steal stole stolen
swim swam swum
think thought thought
tear tore torn
throw threw thrown
wear wore worn
weave wove woven
write wrote written
""".strip().splitlines()
    )
}
_PLURALS = {"mouse": "mice", "leaf": "leaves", "fish": "fish", "sheep": "sheep", "deer": "deer", "trout": "trout"}
_PLURALS |= {"salmon": "salmon", "potato": "potatoes", "trousers": "trousers", "stairs": "stairs"}
_FINITE = {
    ("be", "past"): ("was", "were", "was", "were"),
    ("be", "present"): ("am", "are", "is", "are"),
    ("have", "present"): ("have", "have", "has", "have"),
    ("do", "present"): ("do", "do", "does", "do"),
    ("do", "past"): ("did",) * 4,
    ("can", "present"): ("can",) * 4,
    ("can", "past"): ("could",) * 4,
    ("will", "present"): ("will",) * 4,
    ("will", "past"): ("would",) * 4,
}
#: Subject, object, possessive and reflexive of those who are pointed at.
PRONOUNS = {
    "feminine": ("she", "her", "her", "herself"),
    "masculine": ("he", "him", "his", "himself"),
    "neuter": ("it", "it", "its", "itself"),
    "plural": ("they", "them", "their", "themselves"),
    "speaker": ("I", "me", "my", "myself"),
    "addressee": ("you", "you", "your", "yourself"),
}
_SILENT_H = {"honest", "hour"}
#: Time expressions that are more than an adverb, word by word with their tags.
TIMES = {
    phrase: list(zip(phrase.split(), tags.split(), strict=True))
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


def article(following: str) -> str:
    """The indefinite article before a word. No word of the lexicon begins like "university" or "one"."""
    return "an" if following[0] in "aeiou" or following in _SILENT_H else "a"


def _ends_in_consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in "aeiou"


def _with_s(word: str) -> str:
    """The ending of plurals and of the third person."""
    if _ends_in_consonant_y(word):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh", "go", "do")) else "s")


@cache
def plural(noun: str) -> str:
    return _PLURALS.get(noun) or _with_s(noun)


def _stem_before_vowel(verb: str) -> str:
    """Doubles the last consonant of a short stressed syllable: "chop", "chopping"."""
    *start, vowel, last = verb
    is_short = vowel in "aeiou" and last not in "aeiouwxy"
    is_stressed = verb == "forget" or not set(start) & set("aeiou")
    return verb + last if is_short and is_stressed else verb


@cache
def gerund(verb: str) -> str:
    if verb == "be":
        return "being"
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "ye")):
        return verb[:-1] + "ing"
    return _stem_before_vowel(verb) + "ing"


@cache
def past(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb][0]
    if verb.endswith("e"):
        return verb + "d"
    return verb[:-1] + "ied" if _ends_in_consonant_y(verb) else _stem_before_vowel(verb) + "ed"


@cache
def participle(verb: str) -> str:
    if verb == "be":
        return "been"
    return _IRREGULAR[verb][1] if verb in _IRREGULAR else past(verb)


@cache
def finite(verb: str, tense: Tense, person: int, is_plural: bool) -> str:
    """Agrees with a subject of person 1, 2 or 3."""
    if forms := _FINITE.get((verb, tense)):
        return forms[3 if is_plural else person - 1]
    if tense == "past":
        return past(verb)
    return _with_s(verb) if person == 3 and not is_plural else verb


#: Aspect or modal: the verb that expresses it, its tag, whether "to" follows, and the form of the verb after it.
HELPERS = {
    "progressive": ("be", "AUX", False, gerund),
    "perfect": ("have", "AUX", False, participle),
    "prospective": ("will", "AUX", False, str),
    "can": ("can", "AUX", False, str),
    "must": ("have", "VERB", True, str),
    "want": ("want", "VERB", True, str),
}
