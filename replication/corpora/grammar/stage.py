"""What a story has said so far, and how it may therefore refer to an entity now.

Mentions must be asked for in the order in which they will be read: whether "she" is clear depends on who came before.
"""

from collections.abc import Callable
from contextlib import contextmanager

from replication.corpora.grammar import lexicon
from replication.corpora.grammar.cast import Cast, Character, Place, draw_cast
from replication.corpora.grammar.clauses import Entity, Form, Mention, Pair, Setting, Tense, Utterance
from replication.dice import Dice


def _agreement(entity: Entity) -> str:
    """Entities of one class share their pronouns."""
    return "plural" if entity.plural else entity.gender


class Stage:
    """The state of one document."""

    def __init__(self, dice: Dice):
        self.dice = dice
        self.cast: Cast = draw_cast(dice)
        self.tense: Tense = "past" if dice.chance(0.75) else "present"
        #: Characters that have been introduced, in order.
        self.present: list[Character] = []
        self.whereabouts: dict[Character, Place] = {}
        self.groups: dict[tuple[Character, Character], Entity] = {}
        #: Entities mentioned in the sentence before and in this one.
        self.before: list[Entity] = []
        self.now: list[Entity] = []
        #: Characters that this sentence has called by name.
        self.called: set[Entity] = set()
        #: Who says "I" and who is "you" in the speech being written, and which of them it has mentioned so. They
        #: are no rivals of a third person before the next sentence.
        self.parts: dict[Entity, Form] = {}
        self.in_person: list[Entity] = []
        #: The number of the sentence in which a fact was last told.
        self.told: dict[tuple[Entity, str], int] = {}
        self.sentence = 0
        #: What the next sentence must be: an answer, thanks.
        self.sequel: Callable[[Stage], Utterance] | None = None
        #: Whether this sentence states a fact again, and how many sentences before it did not. The first
        #: sentences have nothing to repeat but each other.
        self.recalls = False
        self.since_recall = -2

    def end_sentence(self) -> None:
        self.before, self.now, self.in_person = self.now + self.in_person, [], []
        self.called.clear()
        self.sentence += 1
        self.since_recall = 0 if self.recalls else self.since_recall + 1
        self.recalls = False

    @property
    def is_due(self) -> bool:
        """Whether it is time to repeat a fact."""
        return self.since_recall >= 2

    def tell(self, entity: Entity, fact: str) -> None:
        """Notes that this sentence states a fact about an entity."""
        if self.told.get((entity, fact), self.sentence) < self.sentence:
            self.recalls = True
        self.told[entity, fact] = self.sentence

    def remind(self, entity: Entity, fact: str) -> None:
        """Notes that this sentence implies a fact, which nobody could tell from it who did not know it."""
        if (entity, fact) in self.told:
            self.tell(entity, fact)

    @contextmanager
    def conversation(self, speaker: Entity, addressee: Entity):
        """Within it these two are "I" and "you", and the time is the present."""
        tense = self.tense
        self.parts, self.tense = {speaker: "speaker", addressee: "addressee"}, "present"
        yield
        self.parts, self.tense = {}, tense

    def is_clear(self, entity: Entity) -> bool:
        """Whether a pronoun can only mean this entity: nothing else agrees with it that is as fresh in mind.

        What this sentence has mentioned is fresher than what the sentence before did.
        """
        kind = _agreement(entity)
        if any(other is not entity and _agreement(other) == kind for other in self.now):
            return False
        if entity in self.now:
            return True
        return entity in self.before and all(other is entity or _agreement(other) != kind for other in self.before)

    def mention(self, entity: Entity, unsaid: str | None = None) -> Mention:
        """A character, by pronoun, name or description, leaving unsaid what is about to be stated."""
        if entity in self.parts:
            self.in_person.append(entity)
            return Mention(entity, self.parts[entity])
        repeated = entity in self.now
        if self.is_clear(entity) and (repeated or self.dice.chance(0.7)):
            self.now.append(entity)
            return Mention(entity, "pronoun")
        if entity.name and entity not in self.called and (repeated or unsaid == "noun" or self.dice.chance(0.5)):
            return self.named(entity)
        return self.described(entity, 0.0 if unsaid == "trait" else 0.4)

    def named(self, entity: Entity) -> Mention:
        """By name where there is one, never by pronoun."""
        if not entity.name:
            return self.described(entity)
        self.now.append(entity)
        self.called.add(entity)
        return Mention(entity, "name")

    def described(self, entity: Entity, precision: float = 0.5) -> Mention:
        """A definite description, with the adjective at the probability ``precision``."""
        self.now.append(entity)
        adjective = entity.trait if self.dice.chance(precision) else None
        return Mention(entity, "definite", adjective)

    def belonging(self, entity: Entity, owner: Entity, fact: str) -> Mention:
        """Something that somebody owns: "it", "her red kettle", "the baker's kettle" or "the red kettle"."""
        if self.is_clear(entity) and self.dice.chance(0.6):
            self.now.append(entity)
            return Mention(entity, "pronoun")
        is_known = (owner, fact) in self.told
        self.tell(owner, fact)
        is_nameable = owner not in self.now or owner in self.parts or self.is_clear(owner)
        if is_nameable and (not is_known or self.dice.chance(0.6)):
            possessor = self.mention(owner)
            described = self.described(entity)
            return Mention(entity, "definite", described.adjective, possessor)
        if is_known:
            return self.described(entity)
        return self.introduced(entity)

    def introduced(self, entity: Entity) -> Mention:
        """A first mention: "a red kettle"."""
        self.now.append(entity)
        return Mention(entity, "indefinite", entity.trait)

    def treasure(self, who: Character) -> Mention:
        return self.belonging(who.treasure, who.entity, "treasure")

    def companion(self, who: Character) -> Mention:
        """A character that takes part; an animal now and then as the one that somebody has."""
        is_free = who.entity not in self.now
        if who.owner and is_free and (who.owner.entity, "animal") in self.told and self.dice.chance(0.4):
            return self.belonging(who.entity, who.owner.entity, "animal")
        return self.mention(who.entity)

    def pair(self, one: Character, other: Character) -> Mention | Pair:
        """Two characters as one subject."""
        order = self.cast.characters.index
        members = (one, other) if order(one) < order(other) else (other, one)
        if members not in self.groups:
            chain, entities = self.cast.chains + len(self.groups), tuple(member.entity for member in members)
            self.groups[members] = Entity("group", chain, plural=True, members=entities)
        group = self.groups[members]
        if self.is_clear(group):
            self.now.append(group)
            return Mention(group, "pronoun")
        first, second = (self.named(member.entity) for member in members)
        self.now.append(group)
        return Pair(group, first, second)

    def fresh_pair(self) -> tuple[Character, Character] | None:
        """The two that the sentence before mentioned as a pair."""
        return next((members for members, group in self.groups.items() if group in self.before), None)

    def passing(self, noun: str) -> Mention:
        """Something that the story will not come back to."""
        mass, plural = noun in lexicon.MASS, noun in lexicon.PLURAL_ONLY
        count = None
        if not mass and not plural and self.dice.chance(0.35):
            plural = True
            count = self.dice.skewed(lexicon.COUNTS) if self.dice.chance(0.35) else None
        adjective = self.dice.skewed(lexicon.OBJECT_TRAITS) if not mass and self.dice.chance(0.25) else None
        entity = Entity(noun, plural=plural, count=count)
        self.now.append(entity)
        return Mention(entity, "indefinite" if plural or self.dice.chance(0.85) else "definite", adjective)

    def world(self, noun: str) -> Mention:
        """What there is only one of, like the sun."""
        entity = Entity(noun)
        self.now.append(entity)
        return Mention(entity, "definite")

    def at(self, place: Place) -> Setting:
        return Setting(place.preposition, self.described(place.entity))

    def to(self, place: Place) -> Setting:
        return Setting("to", self.described(place.entity))

    def someone_else(self, who: Character) -> Character | None:
        """Another character on stage, preferably the one whom this one likes."""
        others = [other for other in self.present if other is not who]
        if self.cast.likes[who] in others and self.dice.chance(0.4):
            return self.cast.likes[who]
        return self.dice.pick(others) if others else None
