"""Patterns of direct speech: questions with their answers, and remarks. Only single people talk."""

from dataclasses import replace

from replication.corpora.grammar import events, facts, lexicon
from replication.corpora.grammar.cast import Character
from replication.corpora.grammar.clauses import Clause, Entity, Mention, Quotation
from replication.corpora.grammar.stage import Stage


def listeners(stage: Stage, speaker: Character) -> list[Character]:
    return [other for other in stage.present if speaker.speaks and other.speaks and other is not speaker]


def ask(stage: Stage, asker: Character) -> Quotation:
    """One person asks another for a fact about anybody but the asker. The answer follows."""
    asked = stage.dice.pick(listeners(stage, asker))
    topic = asked if stage.dice.chance(0.6) else stage.dice.pick([who for who in stage.present if who is not asker])
    fact = facts.choose(stage, topic)
    vocative = stage.named(asked.entity) if stage.dice.chance(0.3) else None
    with stage.conversation(asker.entity, asked.entity):
        words = _wording(stage, topic, fact)
    speaker = stage.mention(asker.entity)
    addressee = None if vocative else stage.mention(asked.entity)
    stage.sequel = lambda stage: answer(stage, asked, asker, topic, fact)
    return Quotation(words, "ask", speaker, stage.tense, addressee, vocative)


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


def answer(stage: Stage, speaker: Character, asker: Character, topic: Character, fact: str) -> Quotation:
    with stage.conversation(speaker.entity, asker.entity):
        words = facts.state(stage, topic, fact)
    verb = stage.dice.skewed(lexicon.ANSWERING)
    return Quotation(words, verb, stage.mention(speaker.entity), stage.tense)


def remark(stage: Stage, speaker: Character) -> Quotation:
    """Somebody says a fact, a plan or something kind to somebody else."""
    addressee = stage.dice.pick(listeners(stage, speaker))
    with stage.conversation(speaker.entity, addressee.entity):
        if stage.is_due or stage.dice.chance(0.5):
            words = facts.state_one(stage, stage.dice.pick(stage.present))
        elif stage.dice.chance(0.4):
            praise = stage.dice.skewed(lexicon.PRAISE)
            words = Clause("be", stage.treasure(addressee), complement=praise, tense="present")
        else:
            words = events.viewed(stage, events.event(stage, speaker))
    is_exclaimed = stage.dice.chance(0.3)
    verb = stage.dice.skewed(lexicon.EXCLAIMING) if is_exclaimed else "say"
    said_by = stage.mention(speaker.entity)
    return Quotation(words, verb, said_by, stage.tense, stage.mention(addressee.entity), exclaimed=is_exclaimed)
