"""Patterns of direct speech: questions with their answers, and remarks. Only single people talk."""

from dataclasses import replace
from typing import NamedTuple

from sparselib.corpora import events, facts, lexicon
from sparselib.corpora.cast import Character
from sparselib.corpora.clauses import Clause, Entity, Mention, Quotation
from sparselib.corpora.stage import Stage


class Question(NamedTuple):
    """What has been asked, for the sentence that answers it."""

    asker: Character
    asked: Character
    topic: Character
    fact: str


def listeners(stage: Stage, speaker: Character) -> list[Character]:
    return [other for other in stage.present if speaker.speaks and other.speaks and other is not speaker]


def ask(stage: Stage, asker: Character) -> tuple[Question, Quotation]:
    """One person asks another for a fact about anybody but the asker."""
    asked = stage.dice.pick(listeners(stage, asker))
    topic = asked if stage.dice.chance(0.6) else stage.dice.pick([who for who in stage.present if who is not asker])
    question = Question(asker, asked, topic, facts.choose(stage, topic))
    vocative = stage.named(asked.entity) if stage.dice.chance(0.3) else None
    with stage.conversation(asker.entity, asked.entity):
        words = _wording(stage, topic, question.fact)
    speaker = stage.mention(asker.entity)
    addressee = None if vocative else stage.mention(asked.entity)
    return question, Quotation(words, "ask", speaker, stage.tense, addressee, vocative)


def _wording(stage: Stage, topic: Character, fact: str) -> Clause:
    subject = stage.mention(topic.entity)
    match fact:
        case "home" if stage.dice.chance(0.4):
            guess = stage.at(stage.dice.pick(stage.cast.characters).home)
            return Clause("live", subject, setting=guess, tense="present", question="whether")
        case "home" | "workplace":
            return Clause("live" if fact == "home" else "work", subject, tense="present", question="where")
        case "age":
            return Clause("be", subject, tense="present", question="how old")
        case "liking":
            whom = Mention(Entity("person"), "question")
            return Clause("like", subject, whom, tense="present", question="whether")
    return replace(facts.state(stage, topic, fact, subject), question="whether")


def answer(stage: Stage, question: Question) -> Quotation:
    with stage.conversation(question.asked.entity, question.asker.entity):
        words = facts.state(stage, question.topic, question.fact)
    verb = stage.dice.skewed(lexicon.ANSWERING)
    return Quotation(words, verb, stage.mention(question.asked.entity), stage.tense)


def remark(stage: Stage, speaker: Character) -> Quotation:
    """Somebody says a fact or a plan to somebody else."""
    addressee = stage.dice.pick(listeners(stage, speaker))
    with stage.conversation(speaker.entity, addressee.entity):
        if stage.dice.chance(max(0.5, stage.again)):
            words = facts.state_one(stage, stage.dice.pick(stage.present))
        else:
            words = events.viewed(stage, events.event(stage, speaker))
    is_exclaimed = stage.dice.chance(0.3)
    verb = stage.dice.skewed(lexicon.EXCLAIMING) if is_exclaimed else "say"
    said_by = stage.mention(speaker.entity)
    return Quotation(words, verb, said_by, stage.tense, stage.mention(addressee.entity), exclaimed=is_exclaimed)
