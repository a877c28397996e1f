"""What a story has said so far, and how it may therefore refer to an entity now.

Mentions must be asked for in the order in which they will be read: whether "she" is clear depends on who came before.
"""

from contextlib import contextmanager

from sparselib.corpora import lexicon
from sparselib.corpora.cast import Cast, Character, Place, draw_cast
from sparselib.corpora.clauses import Entity, Form, Mention, Pair, Setting, Tense
from sparselib.corpora.dice import Dice


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
        #: Who says "I" and who is "you" in the speech being written.
        self.parts: dict[Entity, Form] = {}
        self.told: set[tuple[Entity, str]] = set()
        #: How likely a fact to be stated is one that has been told before.
        self.again = 0.5
        #: Whether this sentence repeats a fact, and how many sentences before it did not.
        self.recalls = False
        self.since_recall = 0

    def end_sentence(self) -> None:
        self.before, self.now = self.now, []
        self.called.clear()
        self.since_recall = 0 if self.recalls else self.since_recall + 1
        self.recalls = False

    def tell(self, entity: Entity, fact: str) -> None:
        """Notes that this sentence states a fact about an entity."""
        if (entity, fact) in self.told:
            self.recalls = True
        self.told.add((entity, fact))

    @contextmanager
    def conversation(self, speaker: Entity, addressee: Entity):
        """Within it these two are "I" and "you", and the time is the present."""
        tense = self.tense
        self.parts, self.tense = {speaker: "speaker", addressee: "addressee"}, "present"
        yield
        self.parts, self.tense = {}, tense

    def is_clear(self, entity: Entity) -> bool:
        """Whether a pronoun can only mean this entity: fresh in mind, and nothing else there agrees with it."""
        kind, fresh = _agreement(entity), False
        for recent in (self.before, self.now):
            for other in recent:
                if other is entity:
                    fresh = True
                elif _agreement(other) == kind:
                    return False
        return fresh

    def mention(self, entity: Entity, unsaid: str | None = None) -> Mention:
        """A character, by pronoun, name or description, leaving unsaid what is about to be stated."""
        if entity in self.parts:
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
        if entity.name:
            self.tell(entity, "noun")
        if not self.dice.chance(precision):
            return Mention(entity, "definite")
        self.tell(entity, "trait")
        return Mention(entity, "definite", entity.trait)

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
        self.tell(entity, "trait")
        return Mention(entity, "indefinite", entity.trait)

    def treasure(self, who: Character) -> Mention:
        return self.belonging(who.treasure, who.entity, "treasure")

    def companion(self, who: Character) -> Mention:
        """A character that takes part; an animal now and then as its owner's."""
        if who.owner and who.entity not in self.now and who.owner in self.present and self.dice.chance(0.3):
            return self.belonging(who.entity, who.owner.entity, "animal")
        return self.mention(who.entity)

    def pair(self, one: Character, other: Character) -> Mention | Pair:
        """Two characters as one subject."""
        order = self.cast.characters.index
        members = (one, other) if order(one) < order(other) else (other, one)
        if members not in self.groups:
            self.groups[members] = Entity("group", self.cast.chains + len(self.groups), plural=True)
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
