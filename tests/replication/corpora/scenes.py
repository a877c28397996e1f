"""Abstract sentences that the tests of every language put into words, by name."""

from replication.corpora.grammar.clauses import (
    Age,
    Clause,
    Coordination,
    Entity,
    Mention,
    Pair,
    Quotation,
    Setting,
    Subordination,
)

ANNA = Entity("baker", 0, "feminine", name="Anna", trait="old")
TOM = Entity("farmer", 1, "masculine", name="Tom", trait="proud")
MAX = Entity("student", 2, "masculine", name="Max", trait="tall")
NORA = Entity("painter", 3, "feminine", name="Nora", trait="shy")
SAILORS = Entity("sailor", 4, plural=True, count="three", trait="brave")
DOG = Entity("dog", 5, trait="black")
CAT = Entity("cat", 6, trait="gentle")
BELLA = Entity("dog", 7, "feminine", name="Bella", trait="young")
KETTLE = Entity("kettle", 8, trait="red")
LAMP = Entity("lamp", 9, trait="dark")
KNIFE = Entity("knife", 10, trait="orange")
WOMEN = Entity("group", 11, plural=True, members=(ANNA, NORA))
MIXED = Entity("group", 12, plural=True, members=(ANNA, TOM))


def the(entity, adjective=None, **more):
    return Mention(entity, "definite", adjective, **more)


def a(noun, adjective=None, **features):
    return Mention(Entity(noun, **features), "indefinite", adjective)


def name(entity):
    return Mention(entity, "name")


def it(entity):
    return Mention(entity, "pronoun")


def who(entity):
    return Mention(entity, "relative")


def at(relation, noun, adjective=None, **features):
    return Setting(relation, the(Entity(noun, 20, **features), adjective))


SPEAKER, YOU = Mention(TOM, "speaker"), Mention(ANNA, "addressee")
PRESENT = {"tense": "present"}
SUN = the(Entity("sun"))


def says(words, verb="say", speaker=None, tense="past", **more):
    return Quotation(words, verb, speaker or name(TOM), tense, **more)


SCENES = {
    "state": Clause("live", name(ANNA), setting=at("in", "village", "quiet")),
    "contraction with a feminine": Clause("run", it(TOM), setting=at("to", "church", "old")),
    "near": Clause("live", name(TOM), setting=at("near", "harbour")),
    "elided place": Clause("work", it(ANNA), setting=at("at", "school")),
    "singular stairs": Clause("lie", the(KNIFE), setting=at("under", "stairs", plural=True)),
    "named": Clause("like", it(ANNA), Mention(TOM, "named", "old")),
    "appositive": Clause("work", Mention(NORA, "appositive", "old"), setting=at("in", "studio")),
    "bare profession": Clause("be", name(ANNA), complement=Mention(ANNA, "indefinite"), **PRESENT),
    "described profession": Clause("be", it(ANNA), complement=Mention(ANNA, "indefinite", "old"), **PRESENT),
    "relative subject": Clause(
        "be",
        name(TOM),
        complement=Mention(TOM, "indefinite", relative=Clause("have", who(TOM), Mention(LAMP, "indefinite", "dark"))),
    ),
    "relative object": Clause(
        "find", it(ANNA), the(LAMP, "dark", relative=Clause("lose", name(TOM), who(LAMP), aspect="perfect"))
    ),
    "distinction": Clause("sing", the(SAILORS, relative=Clause("live", who(SAILORS), setting=at("on", "island")))),
    "age": Clause("be", it(ANNA), complement=Age("forty")),
    "adjective": Clause("be", the(SAILORS), complement="proud"),
    "hunger": Clause("be", it(ANNA), complement="hungry"),
    "boredom": Clause("be", it(ANNA), complement="bored"),
    "group of women": Clause("return", it(WOMEN), setting=at("to", "market")),
    "mixed group": Clause("go", it(MIXED), setting=at("to", "valley", "dark")),
    "pair": Clause("come", Pair(WOMEN, name(ANNA), the(NORA, "shy")), setting=at("to", "bakery")),
    "gift": Clause("give", it(TOM), a("cake", "small"), name(MAX)),
    "known gift": Clause("show", name(TOM), the(KETTLE, "red", owner=it(TOM)), the(ANNA)),
    "two pronouns": Clause("show", it(ANNA), it(LAMP), it(TOM)),
    "recipients": Clause("sell", name(NORA), a("egg", "beautiful", plural=True), the(SAILORS)),
    "dative verb": Clause("help", it(TOM), the(MAX)),
    "trust": Clause("trust", it(TOM), it(ANNA)),
    "prepositional object": Clause("wait for", it(TOM), the(MAX, "tall"), setting=at("in", "forest")),
    "thought of a thing": Clause("think of", it(TOM), it(LAMP)),
    "memory": Clause("remember", it(ANNA), content=Clause("be", it(TOM), complement="shy")),
    "play": Clause("play", it(ANNA), a("violin")),
    "mass": Clause("drink", it(TOM), a("water")),
    "negated mass": Clause("drink", it(TOM), a("water"), negative=True),
    "negated thing": Clause("clean", it(ANNA), the(LAMP), negative=True),
    "negated verb": Clause("sing", it(ANNA), negative=True),
    "negated number": Clause("sell", it(ANNA), a("carpet", plural=True, count="two"), negative=True),
    "never": Clause("eat", it(ANNA), a("cheese"), frequency="never", **PRESENT),
    "animal eats": Clause("eat", the(DOG), a("sausage"), **PRESENT),
    "often": Clause("visit", name(TOM), it(ANNA), frequency="often"),
    "still": Clause("love", it(ANNA), the(LAMP), frequency="still"),
    "manner": Clause("carry", it(TOM), the(KETTLE), manner="carefully"),
    "reflexive": Clause("dress", it(ANNA), reflexive=True, time="in the morning"),
    "rest": Clause("rest", it(ANNA), aspect="progressive"),
    "perfect": Clause("go", it(ANNA), aspect="perfect", setting=at("to", "beach"), **PRESENT),
    "prospective": Clause("buy", it(ANNA), a("sword", "new"), aspect="prospective", **PRESENT),
    "would": Clause("buy", it(ANNA), a("pie"), aspect="prospective"),
    "want": Clause("invite", it(TOM), it(ANNA), modal="want", **PRESENT),
    "cannot": Clause("find", it(ANNA), it(LAMP), modal="can", negative=True),
    "must": Clause("drop", it(TOM), a("spoon"), modal="must"),
    "separated": Clause("offer", it(TOM), a("apple", plural=True), name(ANNA), time="suddenly"),
    "owner's name": Clause("stand", the(LAMP, "dark", owner=name(MAX)), setting=at("behind", "door")),
    "owner described": Clause("be", the(KETTLE, "red", owner=the(MAX, "tall")), setting=at("on", "table")),
    "possessive before a vowel": Clause("admire", it(TOM), the(Entity("clock", 13), owner=it(TOM))),
    "because first": Subordination(
        Clause("sleep", it(ANNA)), "because", Clause("be", it(ANNA), complement="tired"), True
    ),
    "because last": Subordination(
        Clause("sleep", it(TOM)), "because", Clause("be", it(TOM), complement="tired"), False
    ),
    "when it was": Subordination(Clause("sing", it(TOM)), "when", Clause("shine", SUN, aspect="progressive"), True),
    "when it is": Subordination(
        Clause("see", it(TOM), the(DOG), **PRESENT),
        "when",
        Clause("return", name(ANNA), setting=at("to", "town"), **PRESENT),
        True,
    ),
    "although": Subordination(
        Clause("hide", name(ANNA), reflexive=True), "although", Clause("be", it(TOM), complement=Age("sixty")), True
    ),
    "but": Coordination(
        Clause("look for", it(TOM), the(LAMP)), "but", Clause("find", it(TOM), it(LAMP), modal="can", negative=True)
    ),
    "and": Coordination(Clause("have", it(TOM), the(KETTLE), **PRESENT), "and", Clause("work", it(ANNA), **PRESENT)),
    "known event": Clause("know", it(TOM), content=Clause("see", it(ANNA), it(LAMP))),
    "where": says(Clause("live", YOU, question="where", **PRESENT), "ask", addressee=name(ANNA)),
    "how old": says(Clause("be", the(DOG), question="how old", **PRESENT), "ask", vocative=name(ANNA)),
    "whether": says(
        Clause("have", YOU, a("kettle", "red"), question="whether", **PRESENT), "ask", it(TOM), addressee=it(ANNA)
    ),
    "whom": says(
        Clause("like", YOU, Mention(Entity("person"), "question"), question="whether", **PRESENT), "ask", it(TOM)
    ),
    "exclamation": says(
        Clause("see", SPEAKER, YOU, **PRESENT), "shout", it(TOM), "present", addressee=the(ANNA), exclaimed=True
    ),
    "my and your": says(
        Clause("clean", SPEAKER, the(KETTLE, owner=YOU), aspect="perfect", **PRESENT), addressee=it(ANNA)
    ),
    "female animal": Clause("chase", the(BELLA, "young"), the(CAT)),
    "invariable colour": Clause("find", it(TOM), the(Entity("lamp", 10, plural=True), "orange")),
}
