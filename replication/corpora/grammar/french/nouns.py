"""French nouns: gender and singular of every concept of the lexicon, and the plurals that no rule gives."""

from typing import NamedTuple

from replication.corpora.grammar.clauses import Entity
from replication.corpora.grammar.glossary import Glossary, rows


class Noun(NamedTuple):
    #: "m" or "f".
    gender: str
    #: Of several words the first one inflects.
    singular: str
    plural: str


#: The masculine noun and the feminine one where it differs.
_PEOPLE = """
baker: boulanger boulangère; farmer: fermier fermière; teacher: instituteur institutrice
sailor: navigateur navigatrice; doctor: médecin; cook: cuisinier cuisinière; gardener: jardinier jardinière
painter: peintre; fisher: pêcheur pêcheuse; carpenter: menuisier menuisière; musician: musicien musicienne
writer: écrivain écrivaine; hunter: chasseur chasseuse; tailor: couturier couturière; smith: forgeron forgeronne
student: étudiant étudiante; nurse: infirmier infirmière; messenger: messager messagère
merchant: marchand marchande; shepherd: berger bergère; miner: mineur mineuse; soldier: soldat soldate
judge: juge; weaver: tisserand tisserande; innkeeper: aubergiste; potter: potier potière; pilot: pilote
librarian: bibliothécaire; beekeeper: apiculteur apicultrice; engineer: ingénieur ingénieure
astronomer: astronome; dancer: danseur danseuse; inventor: inventeur inventrice
"""
#: An animal of unknown gender, a male and a female one.
_ANIMALS = """
dog: m chien, m chien, f chienne
cat: m chat, m chat, f chatte
horse: m cheval, m cheval, f jument
fox: m renard, m renard, f renarde
goat: f chèvre, m bouc, f chèvre
crow: f corneille, m corbeau, f corneille
donkey: m âne, m âne, f ânesse
rabbit: m lapin, m lapin, f lapine
owl: f chouette, m hibou, f chouette
bear: m ours, m ours, f ourse
parrot: m perroquet, m perroquet, f perruche
squirrel: m écureuil, m écureuil, f écureuille
wolf: m loup, m loup, f louve
hedgehog: m hérisson, m hérisson, f hérissonne
goose: f oie, m jars, f oie
"""
_THINGS = """
kettle: f bouilloire; lamp: f lampe; hat: m chapeau; clock: f horloge; umbrella: m parapluie; bicycle: m vélo
scarf: f écharpe; mirror: m miroir; ring: f bague; basket: m panier; box: f boîte; key: f clé; drum: m tambour
telescope: m télescope; kite: m cerf-volant; vase: m vase; coat: m manteau; bell: f cloche; knife: m couteau
candle: f bougie; teapot: f théière; globe: m globe; doll: f poupée; compass: f boussole; suitcase: f valise
necklace: m collier; ladder: f échelle; mug: f chope; album: m album; lantern: f lanterne; ball: f balle
ribbon: m ruban; pillow: m oreiller; feather: f plume; whistle: m sifflet

table: f table; chair: f chaise; shelf: f étagère; floor: m sol; sofa: m canapé; windowsill: m rebord_de_fenêtre
stairs: m escalier; stove: m fourneau; door: f porte; curtain: m rideau

village: m village; forest: f forêt; castle: m château; valley: f vallée; tower: f tour; town: f ville
river: f rivière; lake: m lac; mill: m moulin; bridge: m pont; sea: f mer; harbour: m port; church: f église
station: f gare; canal: m canal; hill: f colline; island: f île; mountain: f montagne; market: m marché
fair: f foire; bazaar: m bazar; park: m parc; museum: m musée; cafe: m café; square: f place; beach: f plage
well: m puits; fountain: f fontaine; bakery: f boulangerie; hospital: m hôpital; kitchen: f cuisine
garden: m jardin; studio: m studio; workshop: m atelier; theatre: m théâtre; attic: m grenier; hut: f cabane
shop: f boutique; forge: f forge; college: f université; clinic: f clinique; office: m bureau; meadow: m pré
mine: f mine; fortress: f forteresse; cottage: f chaumière; cellar: f cave; library: f bibliothèque
orchard: m verger; factory: f usine; dome: f coupole; barn: f grange; kennel: f niche; stable: f écurie
den: f tanière; shed: f remise; burrow: m terrier; oak: m chêne; cave: f grotte; cage: f cage; pine: m pin
ravine: m ravin; school: f école; court: m tribunal; inn: f auberge; stall: m stand; airport: m aéroport
farm: f ferme; ship: m navire; pier: f jetée; stage: f scène; roof: m toit; slope: f pente
chimney: f cheminée; pond: m étang; bush: m buisson

sun: m soleil; wind: m vent; rain: f pluie; snow: f neige; moon: f lune; storm: f tempête; fog: m brouillard

bread: m pain; cake: m gâteau; pie: f tourte; dough: f pâte; roll: f brioche; biscuit: m biscuit; flour: f farine
potato: f pomme_de_terre; carrot: f carotte; cow: f vache; pig: m cochon; chicken: f poule; wheat: m blé
egg: m œuf; book: m livre; story: f histoire; essay: f rédaction; mistake: f faute; map: f carte
blackboard: m tableau; pencil: m crayon; rope: f corde; knot: m nœud; deck: m pont; sail: f voile; flag: m drapeau
barrel: m tonneau; shell: m coquillage; arm: m bras; leg: f jambe; medicine: m médicament; fever: f fièvre
cough: f toux; report: m rapport; pill: f pilule; soup: f soupe; rice: m riz; fish: m poisson; onion: m oignon
sauce: f sauce; sandwich: m sandwich; rose: f rose; tulip: f tulipe; flower: f fleur; tree: m arbre
branch: f branche; weed: f mauvaise_herbe; portrait: m portrait; landscape: m paysage; colour: f couleur
face: m visage; picture: m tableau; brush: m pinceau; trout: f truite; crab: m crabe; herring: m hareng
net: m filet; eel: f anguille; boat: m bateau; plank: f planche; board: m panneau; cupboard: f armoire; bed: m lit
bench: m banc; drawer: m tiroir; stool: m tabouret; violin: m violon; flute: f flûte; trumpet: f trompette
melody: f mélodie; guitar: f guitare; piano: m piano; ticket: m billet; novel: m roman; poem: m poème
letter: f lettre; page: f page; ink: f encre; deer: m cerf; boar: m sanglier; trap: m piège; arrow: f flèche
fire: m feu; pelt: f fourrure; shirt: f chemise; dress: f robe; sleeve: f manche; trousers: m pantalon; cloth: m tissu
glove: m gant; nail: m clou; horseshoe: m fer_à_cheval; sword: f épée; chain: f chaîne; iron: m fer; rod: f barre
exam: m examen; grammar: f grammaire; history: f histoire; pen: m stylo; hand: f main; knee: m genou
towel: f serviette; needle: f aiguille; sheet: m drap; bandage: m pansement; parcel: m colis; message: m message
envelope: f enveloppe; mule: f mule; carpet: m tapis; spice: f épice; silk: f soie; gold: m or; coin: f pièce
pepper: m poivre; sheep: m mouton; lamb: m agneau; pipe: m pipeau; cheese: m fromage; coal: m charbon
copper: m cuivre; cart: f charrette; rock: m rocher; wagon: m chariot; crystal: m cristal; stone: f pierre
boot: f botte; gate: m portail; wall: m mur; cannon: m canon; medal: f médaille; contract: m contrat; law: f loi
verdict: m verdict; file: m dossier; wool: f laine; yarn: m fil; fleece: f toison; beer: f bière; wine: m vin
glass: m verre; plate: f assiette; stew: m ragoût; jug: f cruche; clay: f argile; bowl: m bol; pot: m pot
tile: m carreau; plane: m avion; glider: m planeur; engine: m moteur; instrument: m instrument; newspaper: m journal
card: f fiche; volume: m volume; atlas: m atlas; honey: m miel; wax: f cire; hive: f ruche; clover: m trèfle
apple: f pomme; machine: f machine; plan: m plan; turbine: f turbine; wheel: f roue; screw: f vis; star: f étoile
planet: f planète; comet: f comète; lens: f lentille; distance: f distance; step: m pas; waltz: f valse
costume: m costume; mask: m masque; slipper: f pantoufle; robot: m robot; wire: m fil_de_fer; bone: m os
stick: m bâton; mouse: f souris; milk: m lait; cushion: m coussin; sausage: f saucisse; hay: m foin; water: f eau
duck: m canard; grass: f herbe; leaf: f feuille; fence: f clôture; spoon: f cuillère; nut: f noix; cherry: f cerise
sack: m sac; thistle: m chardon; bucket: m seau; cabbage: m chou; tunnel: m tunnel; moth: m papillon_de_nuit
beetle: m scarabée; berry: f baie; salmon: m saumon; seed: f graine; word: m mot; acorn: m gland; cone: f pomme_de_pin
herd: m troupeau; worm: m ver; mushroom: m champignon; corn: m maïs; frog: f grenouille; cup: f tasse; juice: m jus
tea: m thé; lemonade: f limonade; cloud: m nuage; meat: f viande; shoe: f chaussure; butterfly: m papillon
bird: m oiseau
"""
#: Plural concepts that are one thing in French, and the other way round.
_SINGULAR, _PLURAL = {"stairs"}, {"medicine"}
_PLURALS = {"mauvaise herbe": "mauvaises herbes", "cerf-volant": "cerfs-volants"}


def plural(word: str) -> str:
    """The plural of a noun or of a masculine adjective."""
    if word in _PLURALS:
        return _PLURALS[word]
    head, *rest = word.split()
    if head.endswith("al"):
        head = head[:-2] + "aux"
    elif head.endswith(("eau", "eu", "hibou", "genou", "chou")) and head != "bleu":
        head += "x"
    elif not head.endswith(("s", "x", "z")):
        head += "s"
    return " ".join([head, *rest])


def _noun(gender: str, singular: str) -> Noun:
    singular = singular.replace("_", " ")
    return Noun(gender, singular, plural(singular))


def _person(words: list[str]) -> tuple[Noun, Noun, Noun]:
    man = _noun("m", words[0])
    return man, man, _noun("f", words[-1])


def _variants(table: str) -> list[tuple[str, tuple[Noun, ...]]]:
    lines = (line.partition(":") for line in table.strip().splitlines())
    return [(lemma, tuple(_noun(*noun.split()) for noun in nouns.split(","))) for lemma, _, nouns in lines]


#: Of every concept the nouns for the genders "neuter", "masculine" and "feminine" of an entity.
NOUNS = Glossary(
    "French",
    "noun",
    [
        *((lemma, _person(words)) for lemma, words in rows(_PEOPLE)),
        *_variants(_ANIMALS),
        *((lemma, (_noun(*words),) * 3) for lemma, words in rows(_THINGS)),
    ],
)
_VARIANTS = {"neuter": 0, "masculine": 1, "feminine": 2}


def noun(entity: Entity) -> Noun:
    """The noun for an entity, after the entity's own gender."""
    return NOUNS[entity.noun][_VARIANTS[entity.gender]]


def is_plural(entity: Entity) -> bool:
    return (entity.plural or entity.noun in _PLURAL) and entity.noun not in _SINGULAR


def gender(entity: Entity) -> str:
    """The grammatical gender; a group is feminine if all its members are."""
    if entity.members:
        return "f" if all(gender(member) == "f" for member in entity.members) else "m"
    return "m" if entity.noun == "person" else noun(entity).gender
