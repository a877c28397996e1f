"""What happens to a character, as clauses: work, travel, encounters, gifts, moods.

Every builder takes the stage and the character who acts, and mentions that character first, unless it is handed the
noun phrase for the subject.
"""

from dataclasses import replace

from sparselib.corpora import lexicon
from sparselib.corpora.cast import Character, Place
from sparselib.corpora.clauses import Clause, NounPhrase, Setting
from sparselib.corpora.lexicon import Trade
from sparselib.corpora.stage import Stage


def _do(stage: Stage, trade: Trade, subject: NounPhrase, **features) -> Clause:
    """Something that the table of a trade or a mood allows."""
    if trade.deeds and (not trade.alone or stage.dice.chance(0.7)):
        verb, objects = stage.dice.skewed(trade.deeds)
        return Clause(verb, subject, stage.passing(stage.dice.skewed(objects)), tense=stage.tense, **features)
    return Clause(stage.dice.skewed(trade.alone), subject, tense=stage.tense, **features)


def work(stage: Stage, who: Character, subject: NounPhrase | None = None) -> Clause:
    """What the profession or the species is known for, often where it is done."""
    deed = _do(stage, who.trade, subject or stage.mention(who.entity), manner=_manner(stage, 0.15))
    if not stage.dice.chance(0.5):
        return deed
    stage.whereabouts[who] = who.workplace
    stage.tell(who.entity, "workplace")
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
            stage.tell(who.entity, fact)
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
    subject, recipient = subject or stage.mention(who.entity), stage.companion(other)
    if stage.dice.chance(0.35):
        return Clause("show", subject, stage.treasure(who), recipient, tense=stage.tense)
    gift = stage.passing(stage.dice.skewed(who.trade.gifts))
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
    manner, setting = _manner(stage, 0.3), here(stage, who)
    return Clause(verb, subject, reflexive=True, manner=manner, setting=setting, tense=stage.tense)


def here(stage: Stage, who: Character) -> Setting | None:
    """Where the story last took this character."""
    place = stage.whereabouts.get(who)
    return stage.at(place) if place and stage.dice.chance(0.35) else None


def _manner(stage: Stage, probability: float) -> str | None:
    return stage.dice.skewed(lexicon.MANNERS) if stage.dice.chance(probability) else None


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
    """Weather and bells, for the background."""
    noun = stage.dice.skewed(list(lexicon.SCENERY))
    aspect = "progressive" if stage.dice.chance(0.7) else "simple"
    return Clause(lexicon.SCENERY[noun], stage.world(noun), tense=stage.tense, aspect=aspect)


#: The likelier, the more often it is listed.
EVENTS = [work, work, work, travel, encounter, encounter, give, keep, keep, care]


def event(stage: Stage, who: Character, subject: NounPhrase | None = None) -> Clause:
    return stage.dice.pick(EVENTS)(stage, who, subject)


def viewed(stage: Stage, clause: Clause) -> Clause:
    """The same event, perhaps denied, intended, possible, under way, over or yet to come. Who travelled is there."""
    dice = stage.dice
    if clause.setting and clause.setting.relation == "to":
        return clause
    if dice.chance(0.45):
        frequency = dice.skewed(lexicon.FREQUENCIES) if dice.chance(0.35) else None
        return replace(clause, frequency=frequency) if frequency else clause
    view = dice.skewed(["progressive", "negative", "perfect", "want", "can", "prospective", "must"])
    if view == "negative":
        return replace(clause, negative=True, manner=None)
    if view in ("want", "can", "must"):
        return replace(clause, modal=view)
    if view == "progressive" and clause.verb in lexicon.STATES:
        return clause
    return replace(clause, aspect=view)
