"""The lemmas, most frequent first: choices follow Zipf's law in the order of these tables.

Three kinds of nouns never overlap, so that within a document a noun says which kind of thing it is: the cast
(professions and animals), what the cast keeps (treasures and toys), and where it goes (homes, workplaces, resorts).
"""

from typing import NamedTuple


class Trade(NamedTuple):
    """What somebody of a profession, species or mood does: the selectional preferences of the language."""

    #: Where it is done; empty for a mood.
    place: str
    #: Verbs without an object.
    alone: list[str]
    #: Verbs with the objects that they take.
    deeds: list[tuple[str, list[str]]]
    #: What such a person hands to others.
    gifts: list[str]


def _trades(table: str) -> dict[str, Trade]:
    """Reads lines of ``noun: place | verb verb | verb object object; verb object | gift gift``."""
    trades = {}
    for line in table.strip().splitlines():
        noun, _, rest = line.partition(":")
        place, alone, deeds, gifts = (column.strip() for column in rest.split("|"))
        deeds = [(words[0], words[1:]) for words in map(str.split, deeds.split(";")) if words]
        trades[noun.strip()] = Trade(place, alone.split(), deeds, gifts.split())
    return trades


def _places(table: str) -> dict[str, str]:
    """Reads ``preposition: place place`` lines into the preposition of every place."""
    rows = (line.split(":") for line in table.strip().splitlines())
    return {place: preposition.strip() for preposition, places in rows for place in places.split()}


PROFESSIONS = _trades("""
baker:      bakery   | hum whistle | bake bread cake pie; knead dough; sell roll biscuit; sift flour | cake roll pie
farmer:     farm     | dig whistle | plant potato carrot; milk cow; feed pig chicken; harvest wheat | egg potato
teacher:    school   | read talk   | read book story; correct essay mistake; draw map; clean blackboard | book pencil
sailor:     ship     | row sing    | tie rope knot; clean deck; raise sail flag; load barrel | shell rope
doctor:     hospital | read listen | bandage arm leg; mix medicine; cure fever cough; write report | pill medicine
cook:       kitchen  | hum taste   | cook soup rice; fry fish egg; peel onion potato; taste sauce | soup sandwich
gardener:   garden   | dig rest    | plant rose tulip; water flower tree; cut branch; pull weed | rose tulip
painter:    studio   | dream paint | paint portrait landscape; mix colour; draw face tree; frame picture | picture brush
fisher:     pier     | row wait    | catch trout crab herring; mend net; smoke eel; paint boat | trout crab
carpenter:  workshop | whistle saw | saw plank board; build cupboard bed bench; glue drawer | bench stool
musician:   theatre  | sing bow    | play violin flute trumpet; practise melody; tune guitar piano | flute ticket
writer:     attic    | think dream | write novel poem letter; invent story; tear page; buy ink | poem novel
hunter:     hut      | wait creep  | track deer boar; set trap; sharpen arrow; light fire | arrow pelt
tailor:     shop     | hum sit     | sew shirt dress; measure sleeve; iron trousers; cut cloth | shirt glove
smith:      forge    | sweat sing  | hammer nail horseshoe; forge sword chain; heat iron; bend rod | horseshoe nail
student:    college  | read study  | write essay exam; study grammar history; borrow book; copy page | pen book
nurse:      clinic   | smile listen| bandage hand knee; wash towel; boil needle; fold sheet | pill bandage
messenger:  office   | run ride    | deliver parcel letter; carry message; seal envelope; saddle mule | letter parcel
merchant:   stall    | shout count | sell carpet spice silk; weigh gold; count coin; buy pepper | coin carpet
shepherd:   meadow   | sing rest   | guard sheep lamb; shear sheep; carve pipe; make cheese | cheese pipe
miner:      mine     | dig cough   | dig coal copper; push cart; break rock; load wagon | crystal stone
soldier:    fortress | march wait  | polish boot sword; guard gate wall; raise flag; load cannon | medal sword
judge:      court    | nod think   | sign contract; read law report; write verdict; open file | report pen
weaver:     cottage  | hum sit     | weave carpet cloth; spin wool; dye yarn; wash fleece | cloth yarn
innkeeper:  inn      | laugh talk  | pour beer wine; wipe glass plate; serve stew; fill jug | beer stew
potter:     cellar   | hum paint   | shape clay bowl; fire jug pot; paint plate tile; break bowl | bowl jug
pilot:      airport  | wave wait   | fly plane glider; check engine; study map; read instrument | map ticket
librarian:  library  | read whisper| sort book newspaper; stamp card; dust volume; repair atlas | book atlas
beekeeper:  orchard  | hum whistle | collect honey wax; open hive; plant clover; pick apple | honey apple
engineer:   factory  | think count | repair engine machine; draw plan; test turbine; oil wheel | plan screw
astronomer: dome     | dream wait  | observe star planet comet; draw map; clean lens; measure distance | map lens
dancer:     stage    | dance bow   | practise step waltz; wear costume mask; mend slipper | ticket mask
inventor:   barn     | think shout | invent machine robot; test engine; melt glass; bend wire | machine wire
""")

ANIMALS = _trades("""
dog:        kennel   | bark run growl  | bury bone; guard gate; chew slipper boot; fetch stick |
cat:        roof     | purr sleep jump | catch mouse; drink milk; scratch cushion; steal sausage |
horse:      stable   | gallop neigh    | eat hay apple; pull cart wagon; drink water |
fox:        den      | creep bark      | steal egg chicken; hunt duck; smell cheese |
goat:       slope    | climb bleat jump| eat grass leaf; chew shirt; break fence |
crow:       chimney  | croak fly       | steal coin spoon; crack nut; pick cherry |
donkey:     shed     | bray wait       | carry sack barrel; eat thistle hay; kick bucket |
rabbit:     burrow   | hop run         | nibble carrot cabbage; dig tunnel; eat clover |
owl:        oak      | hoot fly        | hunt mouse; watch moth; catch beetle |
bear:       cave     | growl roar      | eat honey berry; catch salmon; scratch tree |
parrot:     cage     | squawk chatter  | eat seed; repeat word; crack nut |
squirrel:   pine     | climb jump      | gather nut acorn; bury acorn; eat cone |
wolf:       ravine   | howl creep      | hunt deer; smell sheep; watch herd |
hedgehog:   bush     | snore creep     | eat worm beetle; smell mushroom |
goose:      pond     | swim hiss       | eat grass corn; guard egg; catch frog |
""")

#: What a passing state of a person leads to.
PERSON_MOODS = _trades("""
tired:    | sleep yawn rest    | |
hungry:   |                    | eat soup cheese apple; cook rice; buy bread sausage |
happy:    | sing dance laugh   | |
sad:      | cry sigh           | write letter poem |
angry:    | shout complain     | throw stone plate; break cup |
thirsty:  |                    | drink water tea; pour juice; order lemonade |
bored:    | yawn sigh          | read newspaper; count cloud |
nervous:  | tremble whisper    | drop spoon glass |
""")

ANIMAL_MOODS = _trades("""
hungry:   | howl              | eat meat fish; smell sausage |
tired:    | sleep yawn rest   | |
happy:    | jump play         | chase butterfly |
thirsty:  |                   | drink water |
afraid:   | tremble run       | |
curious:  |                   | sniff shoe; watch bird |
""")

WOMEN = """Anna Maria Clara Emma Julia Sophie Laura Helena Nora Lena Alice Marta Rosa Vera Paula Agnes Lucy Eva Greta
Irene Olga Stella Diana Flora""".split()
MEN = """Tom Peter Paul Karl Max Leo Felix Oscar Jan Hugo Anton David Emil Simon Victor Bruno Martin Adam Louis Robert
Arthur Henry Otto Walter""".split()
#: Names of animals by gender.
PETS = {
    "masculine": "Rex Caesar Nero Bruin Pluto Hector".split(),
    "feminine": "Bella Luna Daisy Molly Minka Cleo".split(),
}

#: Homes, where people and animals live.
HOMES = _places("""
in: village forest castle valley tower town
by: river lake mill bridge sea
near: harbour church station canal
on: hill island mountain
""")
#: Resorts, where anybody may go.
RESORTS = _places("""
at: market fair bazaar
in: park museum cafe square
on: beach
by: well fountain
""")
WORKPLACES = _places("""
in: bakery hospital kitchen garden studio workshop theatre attic hut shop forge college clinic office meadow mine
in: fortress cottage cellar library orchard factory dome barn kennel stable den shed burrow oak cave cage pine ravine
at: school court inn stall airport
on: farm ship pier stage roof slope chimney pond
under: bush
""")
PLACE_TRAITS = "old quiet small big dark lonely cold pretty ugly grey strange peaceful".split()

#: How a treasure may be somewhere.
POSTURES = ["stand", "lie", "be"]
TREASURES = """kettle lamp hat clock umbrella bicycle scarf mirror ring basket box key drum telescope kite vase coat
bell knife candle teapot globe doll compass suitcase necklace ladder mug album lantern""".split()
TOYS = "ball ribbon pillow feather whistle".split()
COLOURS = "red blue green yellow white black brown golden orange grey purple pink".split()
#: Where a treasure may be.
FURNITURE = _places("""
on: table chair shelf floor sofa windowsill
under: stairs stove
behind: door curtain
""")

TRAITS = """old young tall kind clever proud brave shy famous lazy quiet cheerful honest strict poor rich elegant
curious generous stubborn strong friendly impatient""".split()
ANIMAL_TRAITS = "brown black white grey small big old young fat wild clever lazy ugly gentle".split()
COUNTS = "two three four five six".split()
AGES = {
    "young": "eighteen nineteen twenty".split(),
    "old": "sixty seventy eighty ninety".split(),
    "other": "thirty forty fifty twenty sixty".split(),
    "animal": "three five two seven four nine eleven".split(),
}

#: What one being does to another, by what the agent is.
ENCOUNTERS = {
    "person": [*"see greet visit help meet thank call remember follow hug invite".split(), "wait for", "listen to"],
    "animal": [*"see follow watch find chase avoid".split(), "wait for", "look at"],
}
THANKING = ["thank", "hug", "smile at"]
LOSING = ["lose", "hide", "forget"]
KEEPING = ["clean", "carry", "hide", "admire", "hold", "touch", "paint", "look at", "think of"]
PLAYING = ["hide", "carry", "chew", "guard", "play with", "look at"]
GIVING = "give show bring send offer sell".split()
TRAVEL = "walk go run hurry return come ride".split()
SELF_CARE = {"person": "wash dress warm comb hide".split(), "animal": "wash warm scratch hide shake".split()}
LIKING = ["like", "love", "admire", "trust"]
OWNING = ["have", "own", "love", "keep"]
BELIEF = ["know", "say", "think", "believe", "remember", "hear"]
TOGETHER = "talk laugh sing dance rest wait".split()
ANSWERING = ["answer", "say", "reply"]
EXCLAIMING = ["shout", "say", "cry", "whisper"]
#: Things of the world that set a scene, and what they do.
SCENERY = {
    "sun": "shine",
    "wind": "blow",
    "rain": "fall",
    "snow": "fall",
    "moon": "rise",
    "storm": "rage",
    "fog": "lift",
}

MANNERS = "slowly quietly carefully quickly happily calmly eagerly secretly proudly patiently".split()
FREQUENCIES = "often always sometimes still never again".split()
#: When a thing happens once, and when it may go on.
MOMENTS = ["then", "soon", "later", "suddenly", "one day", "afterwards", "finally"]
TIMES_OF_DAY = ["in the morning", "in the evening", "at night", "at noon", "every day", "in the afternoon"]
SEASONS = ["in winter", "in summer", "in spring", "in autumn"]
PRAISE = "beautiful wonderful lovely expensive".split()
OBJECT_TRAITS = "small new big beautiful strange little old expensive".split()

#: Nouns that are not counted.
MASS = """bread dough flour wheat medicine rice soup sauce ink cloth iron grammar history gold silk pepper cheese coal
copper wool yarn beer wine stew clay honey wax clover milk hay water grass corn meat juice tea lemonade law""".split()
#: Nouns that have no singular here.
PLURAL_ONLY = {"trousers", "stairs"}
#: Verbs of seeing and knowing, which have no progressive.
STATES = {"see", "remember", "know", "think", "believe", "hear"}
