"""The abstract syntax of a story: who does what to whom, before any language has put it into words.

Lemmas are English words used as names of concepts. Word order, agreement, case and inflection are the business of a
lineariser such as ``english.py``; what must be the same in every language is here: tense, polarity, which entity an
argument refers to, and whether it is named, described or only pointed at with a pronoun.
"""

from dataclasses import dataclass
from typing import Literal

Gender = Literal["feminine", "masculine", "neuter"]
Tense = Literal["past", "present"]
Aspect = Literal["simple", "progressive", "perfect", "prospective"]
Modal = Literal["can", "must", "want"]
Form = Literal[
    "name",  # Anna
    "appositive",  # Anna, the old baker,
    "definite",  # the old baker, her kettle
    "indefinite",  # an old baker
    "named",  # an old baker named Anna
    "pronoun",  # she
    "relative",  # who
    "question",  # who?
    "speaker",  # I
    "addressee",  # you
]


@dataclass(frozen=True, eq=False, slots=True)
class Entity:
    """Anything that can be mentioned. Compared by identity: two loaves are two entities."""

    noun: str
    #: Coreference chain, or -1 for what the story will not mention again.
    chain: int = -1
    gender: Gender = "neuter"
    plural: bool = False
    #: Numeral of a plural entity that is counted.
    count: str | None = None
    name: str | None = None
    #: The adjective that stays with it all through the document.
    trait: str | None = None
    #: Who makes up a group that has formed on the way.
    members: "tuple[Entity, ...]" = ()


@dataclass(frozen=True, slots=True)
class Mention:
    """One noun phrase. Adjective, owner and relative clause belong to descriptions, not to names and pronouns."""

    entity: Entity
    form: Form
    adjective: str | None = None
    #: Takes the place of the article: "her kettle", "the baker's kettle".
    owner: "Mention | None" = None
    #: A clause with one argument of form "relative".
    relative: "Clause | None" = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two mentions joined by "and". ``entity`` is the group they make, which "they" refers to afterwards."""

    entity: Entity
    first: Mention
    second: Mention


NounPhrase = Mention | Pair


@dataclass(frozen=True, slots=True)
class Age:
    """A predicate: so many years old."""

    years: str


@dataclass(frozen=True, slots=True)
class Setting:
    """Where something happens ("in the mill") or leads ("to the mill")."""

    relation: str
    place: Mention


@dataclass(frozen=True, slots=True)
class Clause:
    """One predicate with its arguments. ``modal`` excludes an ``aspect`` other than "simple"."""

    verb: str
    subject: NounPhrase
    object: NounPhrase | None = None
    recipient: NounPhrase | None = None
    #: What the subject is said to be: an adjective, an age, or a noun phrase about the subject itself.
    complement: str | Age | Mention | None = None
    #: The object is the subject itself.
    reflexive: bool = False
    #: What is said, known or thought.
    content: "Clause | None" = None
    setting: Setting | None = None
    manner: str | None = None
    frequency: str | None = None
    #: A time expression; it opens the sentence.
    time: str | None = None
    tense: Tense = "past"
    aspect: Aspect = "simple"
    modal: Modal | None = None
    negative: bool = False
    #: "whether" asks for yes or no, "where" for the setting, "how old" for the age; None asserts.
    #: "Who" is an object of form "question", in a clause that also has "whether" here.
    question: Literal["whether", "where", "how old"] | None = None


@dataclass(frozen=True, slots=True)
class Subordination:
    """A main clause and a clause of reason, time or concession, which may come first."""

    main: Clause
    conjunction: str
    subordinate: Clause
    fronted: bool


@dataclass(frozen=True, slots=True)
class Coordination:
    """Two main clauses."""

    first: Clause
    conjunction: str
    second: Clause


@dataclass(frozen=True, slots=True)
class Quotation:
    """Direct speech, followed by who said it."""

    words: Clause
    verb: str
    speaker: Mention
    tense: Tense
    #: Whom the frame names: "Anna asked Tom".
    addressee: Mention | None = None
    #: Whom the speaker calls by name: "Tom, ...".
    vocative: Mention | None = None
    exclaimed: bool = False


Utterance = Clause | Subordination | Coordination | Quotation
