"""What happens to a character, as clauses: work, travel, encounters, gifts, moods.

Every builder takes the stage and the character who acts, and mentions that character first, unless it is handed the
noun phrase for the subject.
"""

from dataclasses import replace

from replication.corpora.grammar import lexicon
from replication.corpora.grammar.cast import Character, Place
from replication.corpora.grammar.clauses import Clause, NounPhrase, Setting
from replication.corpora.grammar.lexicon import Trade
from replication.corpora.grammar.stage import Stage


def _do(stage: Stage, trade: Trade, subject: NounPhrase) -> Clause:
    """Something that the table of a trade or a mood allows."""
    if trade.deeds and (not trade.alone or stage.dice.chance(0.7)):
        verb, objects = stage.dice.skewed(trade.deeds)
        return Clause(verb, subject, stage.passing(stage.dice.skewed(objects)), tense=stage.tense)
    return Clause(stage.dice.skewed(trade.alone), subject, tense=stage.tense)


def work(stage: Stage, who: Character, subject: NounPhrase | None = None) -> Clause:
    """What the profession or the species is known for, often where it is done."""
    deed = _do(stage, who.trade, subject or stage.mention(who.entity))
    if not stage.dice.chance(0.5):
        return deed
    stage.whereabouts[who] = who.workplace
    stage.remind(who.entity, "workplace")
    return replace(deed, setting=stage.at(who.workplace))


def travel(stage: Stage, who: Character, subject: NounPhrase | None = None) -> Clause:
    """To a resort, to work or home; the story remembers it."""
    goal = stage.dice.pick([*stage.cast.resorts, who.workplace, who.home])
    return _go(stage, who, goal, subject)


def go_home(stage: Stage, who: Character, subject: NounPhrase | None = None) -> Clause:
    return _go(stage, who, who.home, subject)


def _go(stage: Stage, who: Character, goal: Place, subject: NounPhrase | None) -> Clause:
    subject = subject or stage.mention(who.entity)
    for fact, place in (("home", who.home), ("workplace", who.workplace)):
        if goal is place:
            stage.remind(who.entity, fact)
    stage.whereabouts[who] = goal
    return Clause(stage.dice.skewed(lexicon.TRAVEL), subject, setting=stage.to(goal), tense=stage.tense)


def encounter(stage: Stage, who: Character, subject: NounPhrase | None = None) -> Clause:
    """One character does something to another, where the first one is."""
    other = stage.someone_else(who)
    if other is None:
        return work(stage, who, subject)
    verb = stage.dice.skewed(lexicon.ENCOUNTERS[who.kind])
    subject = subject or stage.mention(who.entity)
    return Clause(verb, subject, stage.companion(other), setting=here(stage, who), tense=stage.tense)


def give(stage: Stage, who: Character, subject: NounPhrase | None = None) -> Clause:
    """A person hands over a product of the profession, or shows the treasure that stays with it."""
    other = stage.someone_else(who)
    if other is None or not who.trade.gifts:
        return encounter(stage, who, subject)
    subject = subject or stage.mention(who.entity)
    if stage.dice.chance(0.35):
        treasure = stage.treasure(who)
        return Clause("show", subject, treasure, stage.companion(other), tense=stage.tense)
    recipient, gift = stage.companion(other), stage.passing(stage.dice.skewed(who.trade.gifts))
    return Clause(stage.dice.skewed(lexicon.GIVING), subject, gift, recipient, tense=stage.tense)


def keep(stage: Stage, who: Character, subject: NounPhrase | None = None) -> Clause:
    """Something done with the treasure."""
    verb = stage.dice.skewed(lexicon.KEEPING if who.kind == "person" else lexicon.PLAYING)
    subject = subject or stage.mention(who.entity)
    return Clause(verb, subject, stage.treasure(who), setting=here(stage, who), tense=stage.tense)


def care(stage: Stage, who: Character, subject: NounPhrase | None = None) -> Clause:
    """Something done to oneself."""
    verb = stage.dice.skewed(lexicon.SELF_CARE[who.kind])
    subject = subject or stage.mention(who.entity)
    return Clause(verb, subject, reflexive=True, setting=here(stage, who), tense=stage.tense)


def here(stage: Stage, who: Character) -> Setting | None:
    """Where the story last took this character."""
    place = stage.whereabouts.get(who)
    return stage.at(place) if place and stage.dice.chance(0.35) else None


def mood_and_deed(stage: Stage, who: Character, deed_first: bool) -> tuple[Clause, Clause]:
    """A passing state and what it leads to, in the order in which they will be read."""
    moods = lexicon.PERSON_MOODS if who.kind == "person" else lexicon.ANIMAL_MOODS
    mood = stage.dice.skewed(list(moods))
    if deed_first:
        deed = _do(stage, moods[mood], stage.mention(who.entity))
        return deed, Clause("be", stage.mention(who.entity), complement=mood, tense=stage.tense)
    state = Clause("be", stage.mention(who.entity), complement=mood, tense=stage.tense)
    return state, _do(stage, moods[mood], stage.mention(who.entity))


def scenery(stage: Stage) -> Clause:
    """The weather, for a background."""
    noun = stage.dice.skewed(list(lexicon.SCENERY))
    aspect = "progressive" if stage.dice.chance(0.7) else "simple"
    return Clause(lexicon.SCENERY[noun], stage.world(noun), tense=stage.tense, aspect=aspect)


#: The likelier an event, the more often it is listed.
EVENTS = [work, work, work, travel, encounter, encounter, give, keep, keep, care]


def event(stage: Stage, who: Character, subject: NounPhrase | None = None) -> Clause:
    return stage.dice.pick(EVENTS)(stage, who, subject)


def viewed(stage: Stage, clause: Clause) -> Clause:
    """The same event in a certain manner, denied, intended, possible, under way, over or yet to come."""
    dice, is_state = stage.dice, clause.verb in lexicon.STATES
    if not is_state and dice.chance(0.2):
        clause = replace(clause, manner=dice.skewed(lexicon.MANNERS))
    if clause.setting and clause.setting.relation == "to":
        return clause  # who travelled is there
    if dice.chance(0.45):
        return replace(clause, frequency=dice.skewed(lexicon.FREQUENCIES)) if dice.chance(0.4) else clause
    view = dice.skewed(["progressive", "negative", "perfect", "want", "can", "prospective", "must"])
    if view == "negative":
        return replace(clause, negative=True, manner=None)
    if view in ("want", "can", "must"):
        return replace(clause, modal=view)
    return clause if is_state and view == "progressive" else replace(clause, aspect=view)
