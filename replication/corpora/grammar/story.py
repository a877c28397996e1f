"""What is said next: introductions first, then narration and dialogue in a mixture full of repeated facts."""

from collections.abc import Iterator

from replication.corpora.grammar import dialogue, narration
from replication.corpora.grammar.cast import Character
from replication.corpora.grammar.clauses import Utterance
from replication.corpora.grammar.stage import Stage
from replication.dice import Dice

#: Sentences that state a fact, one that has been told before when the stage asks for it.
REMINDERS = [narration.fact, narration.contrast, narration.report]
#: The likelier a pattern, the more often it is listed.
PATTERNS = [
    *REMINDERS,
    narration.happening,
    narration.happening,
    narration.happening,
    narration.homecoming,
    narration.keeping,
    narration.finding,
    narration.search,
    narration.distinction,
    narration.concession,
    narration.affection,
    narration.mood,
    narration.moment,
    narration.meanwhile,
    narration.sequence,
    narration.together,
]


def tell(dice: Dice) -> Iterator[Utterance]:
    """One document: 8 to 20 sentences. From the fifth on, every third at the latest repeats a fact."""
    stage = Stage(dice)
    waiting = list(stage.cast.characters)
    for left in range(dice.between(8, 20), 0, -1):
        if sequel := stage.sequel:
            stage.sequel = None
            yield sequel(stage)
        elif len(stage.present) < 2 or (waiting and not stage.is_due and dice.chance(0.4)):
            yield narration.introduction(stage, waiting.pop(0))
        else:
            yield _go_on(stage, is_last=left == 1)
        stage.end_sentence()


def _go_on(stage: Stage, is_last: bool) -> Utterance:
    """The next sentence about those on stage. There is time for a question if the answer comes before a fact is due."""
    dice, who = stage.dice, _focus(stage)
    if dialogue.listeners(stage, who) and dice.chance(0.25):
        may_ask = stage.since_recall <= 0 and not is_last
        return dialogue.ask(stage, who) if may_ask and dice.chance(0.6) else dialogue.remark(stage, who)
    if stage.is_due:
        return dice.pick(REMINDERS)(stage, who)
    if stage.fresh_pair() and dice.chance(0.6):
        return narration.together(stage, who)
    return dice.pick(PATTERNS)(stage, who)


def _focus(stage: Stage) -> Character:
    """Whom the sentence is about: more likely than not somebody from the sentence before."""
    recent = [who for who in stage.present if who.entity in stage.before]
    return stage.dice.pick(recent if recent and stage.dice.chance(0.65) else stage.present)
