"""What is said next: introductions first, then patterns of narration and dialogue in a mixture full of repeated facts."""

from collections.abc import Iterator

from sparselib.corpora import dialogue, narration
from sparselib.corpora.cast import Character
from sparselib.corpora.clauses import Utterance
from sparselib.corpora.dice import Dice
from sparselib.corpora.stage import Stage

#: Sentences that can always repeat a fact. The likelier a pattern, the more often it is listed.
REMINDERS = [
    narration.fact,
    narration.fact,
    narration.contrast,
    narration.homecoming,
    narration.keeping,
    narration.distinction,
    narration.concession,
    narration.report,
    narration.report,
]
#: Sentences that move the story on, and may repeat facts on the way.
EVENTS = [
    narration.happening,
    narration.happening,
    narration.happening,
    narration.sequence,
    narration.mood,
    narration.affection,
    narration.moment,
    narration.meanwhile,
    narration.together,
    narration.finding,
    narration.search,
]


def tell(dice: Dice) -> Iterator[Utterance]:
    """One document: 8 to 20 sentences, of which every third at the latest repeats a fact."""
    stage = Stage(dice)
    waiting = list(stage.cast.characters)
    question = None
    for left in range(dice.between(8, 20), 0, -1):
        if question:
            yield dialogue.answer(stage, question)
            question = None
        elif waiting and (len(stage.present) < 2 or dice.chance(0.4)):
            yield narration.introduction(stage, waiting.pop(0))
        else:
            question, utterance = _go_on(stage, may_ask=left > 1)
            yield utterance
        stage.end_sentence()


def _go_on(stage: Stage, may_ask: bool) -> tuple[dialogue.Question | None, Utterance]:
    """The next sentence about those on stage, and the question in it."""
    dice, who = stage.dice, _focus(stage)
    is_due = stage.since_recall >= 2
    stage.again = 1.0 if is_due else 0.6
    if dialogue.listeners(stage, who) and dice.chance(0.2):
        if may_ask and not is_due and dice.chance(0.6):
            return dialogue.ask(stage, who)
        return None, dialogue.remark(stage, who)
    if not is_due and stage.fresh_pair():
        return None, narration.together(stage, who)
    return None, dice.pick(REMINDERS if is_due or dice.chance(0.35) else EVENTS)(stage, who)


def _focus(stage: Stage) -> Character:
    """Whom the sentence is about: more likely than not somebody from the sentence before."""
    recent = [who for who in stage.present if who.entity in stage.before]
    return stage.dice.pick(recent if recent and stage.dice.chance(0.65) else stage.present)
