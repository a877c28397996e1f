"""German nouns: article, singular and plural of every concept of the lexicon.

People and animals have one noun per gender. A grammatical gender is that of the noun: "sie" is a lamp ("die Lampe").
"""

from typing import NamedTuple

from replication.corpora.grammar.clauses import Entity
from replication.corpora.grammar.glossary import Glossary, rows


class Noun(NamedTuple):
    gender: str
    singular: str
    plural: str


#: The masculine noun; the feminine one has the ending "-in", with an umlaut where it is written out.
_PEOPLE = """
baker: Bäcker; farmer: Bauer Bauern Bäuerin; teacher: Lehrer; sailor: Matrose Matrosen Matrosin
doctor: Arzt Ärzte Ärztin; cook: Koch Köche Köchin; gardener: Gärtner; painter: Maler; fisher: Fischer
carpenter: Tischler; musician: Musiker; writer: Schriftsteller; hunter: Jäger; tailor: Schneider
smith: Schmied Schmiede Schmiedin; student: Student Studenten Studentin; nurse: Pfleger
messenger: Bote Boten Botin; merchant: Händler; shepherd: Schäfer; miner: Bergarbeiter
soldier: Soldat Soldaten Soldatin; judge: Richter; weaver: Weber; innkeeper: Wirt Wirte Wirtin; potter: Töpfer
pilot: Pilot Piloten Pilotin; librarian: Bibliothekar Bibliothekare Bibliothekarin; beekeeper: Imker
engineer: Ingenieur Ingenieure Ingenieurin; astronomer: Astronom Astronomen Astronomin
dancer: Tänzer; inventor: Erfinder
"""
#: An animal of unknown gender, a male and a female one.
_ANIMALS = """
dog: der Hund Hunde, der Rüde Rüden, die Hündin Hündinnen
cat: die Katze Katzen, der Kater Kater, die Katze Katzen
horse: das Pferd Pferde, der Hengst Hengste, die Stute Stuten
fox: der Fuchs Füchse, der Fuchs Füchse, die Füchsin Füchsinnen
goat: die Ziege Ziegen, der Ziegenbock Ziegenböcke, die Ziege Ziegen
crow: die Krähe Krähen, der Rabe Raben, die Krähe Krähen
donkey: der Esel Esel, der Esel Esel, die Eselin Eselinnen
rabbit: das Kaninchen Kaninchen, der Hase Hasen, die Häsin Häsinnen
owl: die Eule Eulen, der Uhu Uhus, die Eule Eulen
bear: der Bär Bären, der Bär Bären, die Bärin Bärinnen
parrot: der Papagei Papageien, der Papagei Papageien, die Papageiendame Papageiendamen
squirrel: das Eichhörnchen Eichhörnchen, der Eichkater Eichkater, die Eichkatze Eichkatzen
wolf: der Wolf Wölfe, der Wolf Wölfe, die Wölfin Wölfinnen
hedgehog: der Igel Igel, der Igel Igel, die Igeldame Igeldamen
goose: die Gans Gänse, der Gänserich Gänseriche, die Gans Gänse
"""
_THINGS = """
kettle: der Kessel Kessel; lamp: die Lampe Lampen; hat: der Hut Hüte; clock: die Uhr Uhren
umbrella: der Regenschirm Regenschirme; bicycle: das Fahrrad Fahrräder; scarf: der Schal Schals
mirror: der Spiegel Spiegel; ring: der Ring Ringe; basket: der Korb Körbe; box: die Kiste Kisten
key: der Schlüssel Schlüssel; drum: die Trommel Trommeln; telescope: das Fernrohr Fernrohre
kite: der Drachen Drachen; vase: die Vase Vasen; coat: der Mantel Mäntel; bell: die Glocke Glocken
knife: das Messer Messer; candle: die Kerze Kerzen; teapot: die Teekanne Teekannen; globe: der Globus Globen
doll: die Puppe Puppen; compass: der Kompass Kompasse; suitcase: der Koffer Koffer
necklace: die Halskette Halsketten; ladder: die Leiter Leitern; mug: der Becher Becher; album: das Album Alben
lantern: die Laterne Laternen; ball: der Ball Bälle; ribbon: das Band Bänder; pillow: das Kopfkissen Kopfkissen
feather: die Feder Federn; whistle: die Trillerpfeife Trillerpfeifen

table: der Tisch Tische; chair: der Stuhl Stühle; shelf: das Regal Regale; floor: der Boden Böden
sofa: das Sofa Sofas; windowsill: das Fensterbrett Fensterbretter; stairs: die Treppe Treppen
stove: der Herd Herde; door: die Tür Türen; curtain: der Vorhang Vorhänge

village: das Dorf Dörfer; forest: der Wald Wälder; castle: das Schloss Schlösser; valley: das Tal Täler
tower: der Turm Türme; town: die Stadt Städte; river: der Fluss Flüsse; lake: der See Seen; mill: die Mühle Mühlen
bridge: die Brücke Brücken; sea: das Meer Meere; harbour: der Hafen Häfen; church: die Kirche Kirchen
station: der Bahnhof Bahnhöfe; canal: der Kanal Kanäle; hill: der Hügel Hügel; island: die Insel Inseln
mountain: der Berg Berge; market: der Markt Märkte; fair: der Jahrmarkt Jahrmärkte; bazaar: der Basar Basare
park: der Park Parks; museum: das Museum Museen; cafe: das Café Cafés; square: der Platz Plätze
beach: der Strand Strände; well: der Brunnen Brunnen; fountain: der Springbrunnen Springbrunnen
bakery: die Bäckerei Bäckereien; hospital: das Krankenhaus Krankenhäuser; kitchen: die Küche Küchen
garden: der Garten Gärten; studio: das Atelier Ateliers; workshop: die Werkstatt Werkstätten
theatre: das Theater Theater; attic: der Dachboden Dachböden; hut: die Hütte Hütten; shop: der Laden Läden
forge: die Schmiede Schmieden; college: die Hochschule Hochschulen; clinic: die Klinik Kliniken
office: das Büro Büros; meadow: die Wiese Wiesen; mine: das Bergwerk Bergwerke; fortress: die Festung Festungen
cottage: das Häuschen Häuschen; cellar: der Keller Keller; library: die Bibliothek Bibliotheken
orchard: der Obstgarten Obstgärten; factory: die Fabrik Fabriken; dome: die Kuppel Kuppeln; barn: die Scheune Scheunen
kennel: die Hundehütte Hundehütten; stable: der Stall Ställe; den: der Bau Baue; shed: der Schuppen Schuppen
burrow: der Kaninchenbau Kaninchenbaue; oak: die Eiche Eichen; cave: die Höhle Höhlen; cage: der Käfig Käfige
pine: die Kiefer Kiefern; ravine: die Schlucht Schluchten; school: die Schule Schulen; court: das Gericht Gerichte
inn: das Gasthaus Gasthäuser; stall: der Stand Stände; airport: der Flughafen Flughäfen; farm: der Bauernhof Bauernhöfe
ship: das Schiff Schiffe; pier: der Pier Piers; stage: die Bühne Bühnen; roof: das Dach Dächer; slope: der Hang Hänge
chimney: der Schornstein Schornsteine; pond: der Teich Teiche; bush: der Busch Büsche

sun: die Sonne Sonnen; wind: der Wind Winde; rain: der Regen Regen; snow: der Schnee Schnee; moon: der Mond Monde
storm: der Sturm Stürme; fog: der Nebel Nebel

bread: das Brot Brote; cake: der Kuchen Kuchen; pie: die Pastete Pasteten; dough: der Teig Teige
roll: das Brötchen Brötchen; biscuit: der Keks Kekse; flour: das Mehl Mehle; potato: die Kartoffel Kartoffeln
carrot: die Karotte Karotten; cow: die Kuh Kühe; pig: das Schwein Schweine; chicken: das Huhn Hühner
wheat: der Weizen Weizen; egg: das Ei Eier; book: das Buch Bücher; story: die Geschichte Geschichten
essay: der Aufsatz Aufsätze; mistake: der Fehler Fehler; map: die Karte Karten; blackboard: die Tafel Tafeln
pencil: der Bleistift Bleistifte; rope: das Seil Seile; knot: der Knoten Knoten; deck: das Deck Decks
sail: das Segel Segel; flag: die Fahne Fahnen; barrel: das Fass Fässer; shell: die Muschel Muscheln
arm: der Arm Arme; leg: das Bein Beine; medicine: die Medizin Medizinen; fever: das Fieber Fieber
cough: der Husten Husten; report: der Bericht Berichte; pill: die Pille Pillen; soup: die Suppe Suppen
rice: der Reis Reis; fish: der Fisch Fische; onion: die Zwiebel Zwiebeln; sauce: die Soße Soßen
sandwich: das Butterbrot Butterbrote; rose: die Rose Rosen; tulip: die Tulpe Tulpen; flower: die Blume Blumen
tree: der Baum Bäume; branch: der Ast Äste; weed: das Unkraut Unkräuter; portrait: das Porträt Porträts
landscape: die Landschaft Landschaften; colour: die Farbe Farben; face: das Gesicht Gesichter; picture: das Bild Bilder
brush: der Pinsel Pinsel; trout: die Forelle Forellen; crab: die Krabbe Krabben; herring: der Hering Heringe
net: das Netz Netze; eel: der Aal Aale; boat: das Boot Boote; plank: die Planke Planken; board: das Brett Bretter
cupboard: der Schrank Schränke; bed: das Bett Betten; bench: die Bank Bänke; drawer: die Schublade Schubladen
stool: der Hocker Hocker; violin: die Geige Geigen; flute: die Flöte Flöten; trumpet: die Trompete Trompeten
melody: die Melodie Melodien; guitar: die Gitarre Gitarren; piano: das Klavier Klaviere
ticket: die Eintrittskarte Eintrittskarten; novel: der Roman Romane; poem: das Gedicht Gedichte
letter: der Brief Briefe; page: die Seite Seiten; ink: die Tinte Tinten; deer: der Hirsch Hirsche
boar: das Wildschwein Wildschweine; trap: die Falle Fallen; arrow: der Pfeil Pfeile; fire: das Feuer Feuer
pelt: das Fell Felle; shirt: das Hemd Hemden; dress: das Kleid Kleider; sleeve: der Ärmel Ärmel
trousers: die Hose Hosen; cloth: der Stoff Stoffe; glove: der Handschuh Handschuhe; nail: der Nagel Nägel
horseshoe: das Hufeisen Hufeisen; sword: das Schwert Schwerter; chain: die Kette Ketten; iron: das Eisen Eisen
rod: die Stange Stangen; exam: die Prüfung Prüfungen; grammar: die Grammatik Grammatiken
history: die Geschichte Geschichten; pen: der Füller Füller; hand: die Hand Hände; knee: das Knie Knie
towel: das Handtuch Handtücher; needle: die Nadel Nadeln; sheet: das Laken Laken; bandage: der Verband Verbände
parcel: das Paket Pakete; message: die Nachricht Nachrichten; envelope: der Umschlag Umschläge
mule: das Maultier Maultiere; carpet: der Teppich Teppiche; spice: das Gewürz Gewürze; silk: die Seide Seiden
gold: das Gold Gold; coin: die Münze Münzen; pepper: der Pfeffer Pfeffer; sheep: das Schaf Schafe
lamb: das Lamm Lämmer; pipe: die Pfeife Pfeifen; cheese: der Käse Käse; coal: die Kohle Kohlen
copper: das Kupfer Kupfer; cart: der Karren Karren; rock: der Felsbrocken Felsbrocken; wagon: der Wagen Wagen
crystal: der Kristall Kristalle; stone: der Stein Steine; boot: der Stiefel Stiefel; gate: das Tor Tore
wall: die Mauer Mauern; cannon: die Kanone Kanonen; medal: die Medaille Medaillen; contract: der Vertrag Verträge
law: das Gesetz Gesetze; verdict: das Urteil Urteile; file: die Akte Akten; wool: die Wolle Wolle
yarn: das Garn Garne; fleece: das Vlies Vliese; beer: das Bier Biere; wine: der Wein Weine; glass: das Glas Gläser
plate: der Teller Teller; stew: der Eintopf Eintöpfe; jug: der Krug Krüge; clay: der Ton Tone
bowl: die Schüssel Schüsseln; pot: der Topf Töpfe; tile: die Fliese Fliesen; plane: das Flugzeug Flugzeuge
glider: der Segelflieger Segelflieger; engine: der Motor Motoren; instrument: das Messgerät Messgeräte
newspaper: die Zeitung Zeitungen; card: die Karteikarte Karteikarten; volume: der Band Bände; atlas: der Atlas Atlanten
honey: der Honig Honige; wax: das Wachs Wachse; hive: der Bienenstock Bienenstöcke; clover: der Klee Klee
apple: der Apfel Äpfel; machine: die Maschine Maschinen; plan: der Plan Pläne; turbine: die Turbine Turbinen
wheel: das Rad Räder; screw: die Schraube Schrauben; star: der Stern Sterne; planet: der Planet Planeten
comet: der Komet Kometen; lens: die Linse Linsen; distance: der Abstand Abstände; step: der Schritt Schritte
waltz: der Walzer Walzer; costume: das Kostüm Kostüme; mask: die Maske Masken; slipper: der Pantoffel Pantoffeln
robot: der Roboter Roboter; wire: der Draht Drähte; bone: der Knochen Knochen; stick: der Stock Stöcke
mouse: die Maus Mäuse; milk: die Milch Milch; cushion: das Kissen Kissen; sausage: die Wurst Würste
hay: das Heu Heu; water: das Wasser Wasser; duck: die Ente Enten; grass: das Gras Gräser; leaf: das Blatt Blätter
fence: der Zaun Zäune; spoon: der Löffel Löffel; nut: die Nuss Nüsse; cherry: die Kirsche Kirschen
sack: der Sack Säcke; thistle: die Distel Disteln; bucket: der Eimer Eimer; cabbage: der Kohlkopf Kohlköpfe
tunnel: der Tunnel Tunnel; moth: die Motte Motten; beetle: der Käfer Käfer; berry: die Beere Beeren
salmon: der Lachs Lachse; seed: der Samen Samen; word: das Wort Wörter; acorn: die Eichel Eicheln
cone: der Zapfen Zapfen; herd: die Herde Herden; worm: der Wurm Würmer; mushroom: der Pilz Pilze
corn: der Mais Mais; frog: der Frosch Frösche; cup: die Tasse Tassen; juice: der Saft Säfte; tea: der Tee Tees
lemonade: die Limonade Limonaden; cloud: die Wolke Wolken; meat: das Fleisch Fleisch; shoe: der Schuh Schuhe
butterfly: der Schmetterling Schmetterlinge; bird: der Vogel Vögel
"""
#: Nouns that end in "-(e)n" outside the nominative singular.
WEAK = set("Matrose Student Bote Soldat Pilot Astronom Rüde Rabe Hase Bär Bauer Planet Komet".split())
#: Plural concepts that are one thing in German.
SINGULAR = {"stairs"}
_GENDERS = {"der": "m", "die": "f", "das": "n"}


def _noun(words: list[str]) -> Noun:
    article, singular, plural = words
    return Noun(_GENDERS[article], singular, plural)


def _person(words: list[str]) -> tuple[Noun, Noun, Noun]:
    masculine, plural, feminine = words if len(words) == 3 else (words[0], words[0], words[0] + "in")
    man = Noun("m", masculine, plural)
    return man, man, Noun("f", feminine, feminine + "nen")


def _variants(table: str) -> list[tuple[str, tuple[Noun, ...]]]:
    lines = (line.partition(":") for line in table.strip().splitlines())
    return [(lemma, tuple(_noun(noun.split()) for noun in nouns.split(","))) for lemma, _, nouns in lines]


#: Of every concept the nouns for the genders "neuter", "masculine" and "feminine" of an entity.
NOUNS = Glossary(
    "German",
    "noun",
    [
        *((lemma, _person(words)) for lemma, words in rows(_PEOPLE)),
        *_variants(_ANIMALS),
        *((lemma, (_noun(words),) * 3) for lemma, words in rows(_THINGS)),
    ],
)
_VARIANTS = {"neuter": 0, "masculine": 1, "feminine": 2}


def noun(entity: Entity) -> Noun:
    """The noun for an entity, after the entity's own gender."""
    return NOUNS[entity.noun][_VARIANTS[entity.gender]]


def is_plural(entity: Entity) -> bool:
    return entity.plural and entity.noun not in SINGULAR


def gender(entity: Entity) -> str:
    """The grammatical gender, "m", "f" or "n", or "p" for the plural."""
    return "p" if is_plural(entity) else noun(entity).gender
