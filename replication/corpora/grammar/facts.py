"""What is true of a character all through the document, as clauses.

The builders take the stage, the character, and the noun phrase that stands for it as the subject. They are called by
``state``, which keeps account of what has been told.
"""

from collections.abc import Callable, Collection

from replication.corpora.grammar import lexicon
from replication.corpora.grammar.cast import Character
from replication.corpora.grammar.clauses import Age, Clause, Mention, NounPhrase
from replication.corpora.grammar.stage import Stage


def _noun(stage: Stage, who: Character, subject: NounPhrase) -> Clause:
    adjective = who.entity.trait if stage.dice.chance(0.5) else None
    return Clause("be", subject, complement=Mention(who.entity, "indefinite", adjective), tense=stage.tense)


def _trait(stage: Stage, who: Character, subject: NounPhrase) -> Clause:
    return Clause("be", subject, complement=who.entity.trait, tense=stage.tense)


def _age(stage: Stage, who: Character, subject: NounPhrase) -> Clause:
    return Clause("be", subject, complement=Age(who.age), tense=stage.tense)


def _home(stage: Stage, who: Character, subject: NounPhrase) -> Clause:
    return Clause("live", subject, setting=stage.at(who.home), tense=stage.tense)


def _workplace(stage: Stage, who: Character, subject: NounPhrase) -> Clause:
    return Clause("work", subject, setting=stage.at(who.workplace), tense=stage.tense)


def _treasure(stage: Stage, who: Character, subject: NounPhrase) -> Clause:
    if (who.entity, "treasure") not in stage.told:
        return Clause("have", subject, stage.introduced(who.treasure), tense=stage.tense)
    verb = stage.dice.pick(lexicon.OWNING)
    return Clause(verb, subject, stage.described(who.treasure), tense=stage.tense)


def _liking(stage: Stage, who: Character, subject: NounPhrase) -> Clause:
    verb = stage.dice.pick(lexicon.LIKING)
    return Clause(verb, subject, stage.mention(stage.cast.likes[who].entity), tense=stage.tense)


#: The more telling ones first.
FACTS: dict[str, Callable[[Stage, Character, NounPhrase], Clause]] = {
    "home": _home,
    "treasure": _treasure,
    "age": _age,
    "liking": _liking,
    "workplace": _workplace,
    "noun": _noun,
    "trait": _trait,
}
#: Those that tell one character from another in a relative clause: "the baker who lived by the mill".
RELATIVES = ("home", "treasure", "workplace")


def known_of(stage: Stage, who: Character) -> list[str]:
    """The facts that can be stated of a character at this point."""
    lacks = set()
    if who.kind == "animal":
        lacks.add("workplace")
    if not who.entity.name:
        lacks.add("noun")
    if not who.age:
        lacks.add("age")
    if stage.cast.likes[who] not in stage.present:
        lacks.add("liking")
    return [fact for fact in FACTS if fact not in lacks]


def choose(stage: Stage, who: Character, among: Collection[str] = FACTS.keys()) -> str:
    """A fact to state: preferably one that was told some sentences ago, and certainly an old one when that is due."""
    known = [fact for fact in known_of(stage, who) if fact in among]
    told = [fact for fact in known if (who.entity, fact) in stage.told]
    new = [fact for fact in known if fact not in told]
    distant = [fact for fact in told if stage.sentence - stage.told[who.entity, fact] > 2]
    if stage.is_due:
        return stage.dice.skewed(distant or told or new)
    return stage.dice.skewed((distant or new or told) if stage.dice.chance(0.6) else (new or distant or told))


def state(stage: Stage, who: Character, fact: str, subject: NounPhrase | None = None) -> Clause:
    """A fact as a clause."""
    clause = FACTS[fact](stage, who, subject or stage.mention(who.entity, unsaid=fact))
    stage.tell(who.entity, fact)
    return clause


def state_one(
    stage: Stage, who: Character, among: Collection[str] = FACTS.keys(), subject: NounPhrase | None = None
) -> Clause:
    """Any of these facts as a clause."""
    return state(stage, who, choose(stage, who, among), subject)
