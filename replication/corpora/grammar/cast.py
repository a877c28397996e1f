"""Who a document is about, and what stays true of them from its first sentence to its last."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from replication.corpora.grammar import lexicon
from replication.corpora.grammar.clauses import Entity
from replication.corpora.grammar.lexicon import Trade
from replication.dice import Dice


@dataclass(frozen=True, eq=False)
class Place:
    """A place of the document, with the preposition that says where it is."""

    entity: Entity
    preposition: str


@dataclass(frozen=True, eq=False)
class Character:
    """A person, an animal or a group of people, with the facts that the story keeps coming back to."""

    entity: Entity
    kind: str
    trade: Trade
    home: Place
    workplace: Place
    treasure: Entity
    #: None for a group.
    age: str | None
    #: Of an animal that belongs to a person.
    owner: "Character | None" = None

    @property
    def speaks(self) -> bool:
        return self.kind == "person" and not self.entity.plural


@dataclass
class Cast:
    """Everything in a document that has a coreference chain, except groups that form on the way."""

    characters: list[Character] = field(default_factory=list)
    resorts: list[Place] = field(default_factory=list)
    #: Whom each character likes; fixed, whether or not the story gets to say so.
    likes: dict[Character, Character] = field(default_factory=dict)
    season: str = ""
    #: How many coreference chains are taken.
    chains: int = 0


class Casting:
    """Draws a cast in which no noun and no name occurs twice, so that every description fits one entity only."""

    def __init__(self, dice: Dice):
        self.dice = dice
        self.taken: set[str] = set()
        self.chains = 0

    def unused(self, options: Iterable[str]) -> str:
        """A word that this document does not use yet."""
        options = list(options)
        while (word := self.dice.skewed(options)) in self.taken:
            pass
        self.taken.add(word)
        return word

    def entity(self, noun: str, **features) -> Entity:
        self.chains += 1
        return Entity(noun, self.chains - 1, **features)

    def place(self, noun: str, prepositions: dict[str, str]) -> Place:
        self.taken.add(noun)
        return Place(self.entity(noun, trait=self.dice.skewed(lexicon.PLACE_TRAITS)), prepositions[noun])

    def home(self) -> Place:
        return self.place(self.unused(lexicon.HOMES), lexicon.HOMES)

    def thing(self, nouns: list[str]) -> Entity:
        return self.entity(self.unused(nouns), trait=self.dice.skewed(lexicon.COLOURS))

    def person(self, gender: str) -> Character:
        name = self.unused(lexicon.WOMEN if gender == "feminine" else lexicon.MEN)
        trait = self.dice.skewed(lexicon.TRAITS)
        age = self.dice.skewed(lexicon.AGES.get(trait, lexicon.AGES["other"]))
        return self._worker(age, gender=gender, name=name, trait=trait)

    def group(self) -> Character:
        count, trait = self.dice.skewed(lexicon.COUNTS), self.dice.skewed(lexicon.TRAITS)
        return self._worker(None, plural=True, count=count, trait=trait)

    def _worker(self, age: str | None, **features) -> Character:
        noun = self.unused(lexicon.PROFESSIONS)
        trade = lexicon.PROFESSIONS[noun]
        entity = self.entity(noun, **features)
        workplace = self.place(trade.place, lexicon.WORKPLACES)
        return Character(entity, "person", trade, self.home(), workplace, self.thing(lexicon.TREASURES), age)

    def animal(self, owner: Character | None) -> Character:
        noun = self.unused(lexicon.ANIMALS)
        trade = lexicon.ANIMALS[noun]
        trait = self.dice.skewed(lexicon.ANIMAL_TRAITS)
        gender, name = "neuter", None
        if self.dice.chance(0.5):
            gender = self.dice.pick(("masculine", "feminine"))
            name = self.unused(lexicon.PETS[gender])
        entity = self.entity(noun, gender=gender, name=name, trait=trait)
        haunt = self.place(trade.place, lexicon.WORKPLACES)
        age = self.dice.skewed(lexicon.AGES["animal"])
        home = owner.home if owner else self.home()
        return Character(entity, "animal", trade, home, haunt, self.thing(lexicon.TOYS), age, owner)


def draw_cast(dice: Dice) -> Cast:
    """One to three people, of alternating gender more often than not, then perhaps an animal and a group."""
    casting, cast = Casting(dice), Cast(season=dice.skewed(lexicon.SEASONS))
    people = 1 if dice.chance(0.15) else 3 if dice.chance(0.2) else 2
    gender = dice.pick(("feminine", "masculine"))
    for _ in range(people):
        cast.characters.append(casting.person(gender))
        if dice.chance(0.75):
            gender = "masculine" if gender == "feminine" else "feminine"
    if people == 1 or (people == 2 and dice.chance(0.6)):
        cast.characters.append(casting.animal(cast.characters[0] if dice.chance(0.5) else None))
    if people <= 2 and dice.chance(0.25):
        cast.characters.append(casting.group())
    resorts = 2 if dice.chance(0.3) else 1
    cast.resorts = [casting.place(casting.unused(lexicon.RESORTS), lexicon.RESORTS) for _ in range(resorts)]
    for one in cast.characters:
        cast.likes[one] = dice.pick([other for other in cast.characters if other is not one])
    cast.chains = casting.chains
    return cast
