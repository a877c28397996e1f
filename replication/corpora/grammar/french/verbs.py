"""French verbs: what each verb of the lexicon is called, what it governs, and how it describes the past."""

from typing import NamedTuple

from replication.corpora.grammar.glossary import Glossary, rows


class Verb(NamedTuple):
    infinitive: str
    #: Has compound tenses with "être".
    moves: bool = False
    is_reflexive: bool = False
    #: A state has the imparfait where an event has the passé composé.
    is_state: bool = False
    #: "" for a direct object, "dative" for one that a pronoun like "lui" stands for, or a preposition.
    governs: str = ""
    #: Words that belong to it: "faire confiance", "aimer bien".
    particle: tuple[str, ...] = ()
    #: Goes to a place with "jusqu'à".
    reaches: bool = False


_VERBS = """
be: être state; have: avoir state; live: habiter state; work: travailler state; like: aimer +bien state
love: aimer state; admire: admirer state; trust: faire +confiance dative state; own: posséder state
keep: garder state; find: trouver; hide: cacher; look for: chercher; look at: regarder; look: regarder
think of: penser à state; think: penser state; know: savoir state; say: dire; believe: croire state
remember: souvenir se de state; hear: apprendre; see: voir; greet: saluer; visit: rendre +visite dative
help: aider; meet: rencontrer; thank: remercier; call: appeler; follow: suivre; hug: embrasser
invite: inviter; wait for: attendre; wait: attendre; listen to: écouter; listen: écouter; watch: observer
chase: poursuivre; avoid: éviter; smile at: sourire dative; smile: sourire
walk: marcher jusque; go: aller être; run: courir jusque; hurry: précipiter se; return: retourner être
come: venir être; ride: chevaucher jusque
wash: laver; dress: habiller; warm: réchauffer; comb: peigner; shake: secouer; scratch: griffer
give: donner; show: montrer; bring: apporter; send: envoyer; offer: offrir; sell: vendre
lose: perdre; forget: oublier; clean: nettoyer; carry: porter; hold: tenir state; touch: toucher; paint: peindre
chew: mordiller; guard: surveiller; play with: jouer avec; stand: trouver se state; lie: reposer state
talk: parler; laugh: rire; sing: chanter; dance: danser; rest: reposer se
shine: briller state; blow: souffler state; fall: tomber être state; rise: lever se state; rage: faire +rage state
lift: lever se state

hum: fredonner; whistle: siffler; bake: préparer; knead: pétrir; sift: tamiser; dig: creuser; plant: planter
milk: traire; feed: nourrir; harvest: récolter; read: lire; correct: corriger; draw: dessiner; row: ramer
tie: nouer; raise: hisser; load: charger; bandage: panser; mix: mélanger; cure: guérir; write: écrire
taste: goûter; cook: cuisiner; fry: griller; peel: éplucher; water: arroser; cut: couper; pull: tirer
dream: rêver; frame: encadrer; catch: attraper; mend: raccommoder; smoke: fumer; saw: scier; build: construire
glue: coller; bow: incliner se; play: jouer; practise: répéter; tune: accorder; invent: inventer; tear: déchirer
buy: acheter; creep: ramper; track: pister; set: poser; sharpen: aiguiser; light: allumer; sit: asseoir se
sew: coudre; measure: mesurer; iron: repasser; sweat: transpirer; hammer: marteler; forge: forger; heat: chauffer
bend: courber; study: étudier; borrow: emprunter; copy: copier; boil: ébouillanter; fold: plier; deliver: livrer
seal: cacheter; saddle: seller; shout: crier; count: compter; weigh: peser; shear: tondre; carve: tailler
make: fabriquer; cough: tousser; push: pousser; break: casser; march: défiler; polish: astiquer
nod: acquiescer; sign: signer; open: ouvrir; weave: tisser; spin: filer; dye: teindre; pour: verser
wipe: essuyer; serve: servir; fill: remplir; shape: modeler; fire: cuire
wave: saluer; fly: voler; check: vérifier; whisper: chuchoter; sort: trier; stamp: tamponner; dust: dépoussiérer
repair: réparer; collect: recueillir; pick: cueillir; test: tester; oil: huiler; observe: observer; wear: porter
melt: fondre

bark: aboyer; growl: grogner; bury: enterrer; fetch: rapporter; purr: ronronner; sleep: dormir; jump: sauter
drink: boire; steal: voler; gallop: galoper; neigh: hennir; eat: manger; hunt: chasser; smell: sentir
climb: grimper; bleat: bêler; croak: croasser; crack: casser; bray: braire; kick: renverser; hop: sautiller
nibble: grignoter; hoot: hululer; roar: rugir; squawk: piailler; chatter: jacasser; repeat: répéter
gather: ramasser; howl: hurler; snore: ronfler; swim: nager; hiss: siffler

yawn: bâiller; cry: pleurer; sigh: soupirer; complain: plaindre se; throw: jeter; order: commander
tremble: trembler; drop: laisser +tomber; sniff: renifler
"""
#: Verbs that depend on the object. An empty object is none, "self" a reflexive one, "that" a clause.
_SENSES = """
scratch self: gratter; play violin: jouer de; play flute: jouer de; play trumpet: jouer de; fly plane: piloter
fly glider: piloter; dig coal: extraire; dig copper: extraire; write exam: passer; make cheese: faire
pull weed: arracher; hammer nail: enfoncer; think : réfléchir; build cupboard: fabriquer; build bed: fabriquer
build bench: fabriquer; read instrument: consulter; mix medicine: préparer; mend slipper: réparer
break rock: briser; read law: étudier; fry egg: cuire
"""
#: Verbs that frame direct speech.
_SPEECH = """
say: dire dative; ask: demander dative; answer: répondre dative; reply: répliquer dative; shout: crier dative
cry: lancer dative; whisper: murmurer dative
"""
#: Adjectives that are verbs in French.
_PREDICATES = """
hungry: avoir +faim state; thirsty: avoir +soif state; afraid: avoir +peur state; bored: ennuyer se state
"""
#: Singular (first to third person) and third person plural of the present, stem of the imparfait, participle, stem of
#: the future.
_IRREGULAR = """
être: suis es est sont ét été ser; avoir: ai as a ont av eu aur; aller: vais vas va vont all allé ir
pouvoir: peux peux peut peuvent pouv pu pourr; devoir: dois dois doit doivent dev dû devr
vouloir: veux veux veut veulent voul voulu voudr; savoir: sais sais sait savent sav su saur
voir: vois vois voit voient voy vu verr; croire: crois crois croit croient croy cru croir
dire: dis dis dit disent dis dit dir; lire: lis lis lit lisent lis lu lir; faire: fais fais fait font fais fait fer
écrire: écris écris écrit écrivent écriv écrit écrir; boire: bois bois boit boivent buv bu boir
apprendre: apprends apprends apprend apprennent appren appris apprendr
venir: viens viens vient viennent ven venu viendr; tenir: tiens tiens tient tiennent ten tenu tiendr
souvenir: souviens souviens souvient souviennent souven souvenu souviendr
suivre: suis suis suit suivent suiv suivi suivr; poursuivre: poursuis poursuis poursuit poursuivent poursuiv poursuivi poursuivr
offrir: offre offres offre offrent offr offert offrir; ouvrir: ouvre ouvres ouvre ouvrent ouvr ouvert ouvrir
cueillir: cueille cueilles cueille cueillent cueill cueilli cueiller
recueillir: recueille recueilles recueille recueillent recueill recueilli recueiller
dormir: dors dors dort dorment dorm dormi dormir; servir: sers sers sert servent serv servi servir
sentir: sens sens sent sentent sent senti sentir; courir: cours cours court courent cour couru courr
peindre: peins peins peint peignent peign peint peindr; teindre: teins teins teint teignent teign teint teindr
plaindre: plains plains plaint plaignent plaign plaint plaindr
construire: construis construis construit construisent construis construit construir
cuire: cuis cuis cuit cuisent cuis cuit cuir; coudre: couds couds coud cousent cous cousu coudr
rire: ris ris rit rient ri ri rir; sourire: souris souris sourit sourient souri souri sourir
asseoir: assieds assieds assied asseyent assey assis assiér
traire: trais trais trait traient tray trait trair; extraire: extrais extrais extrait extraient extray extrait extrair
braire: brais brais brait braient bray brait brair; envoyer: envoie envoies envoie envoient envoy envoyé enverr
"""


def _verb(words: list[str]) -> Verb:
    infinitive, *rest = words
    flags = {"state", "être", "se", "jusque"}
    particle = tuple(word[1:] for word in rest if word.startswith("+"))
    governed = [word for word in rest if word not in flags and not word.startswith("+")]
    return Verb(
        infinitive, "être" in rest, "se" in rest, "state" in rest, " ".join(governed), particle, "jusque" in rest
    )


def _glossary(kind: str, table: str) -> Glossary:
    return Glossary("French", kind, [(lemma, _verb(words)) for lemma, words in rows(table)])


VERBS = _glossary("verb", _VERBS)
SPEECH = _glossary("verb of speech", _SPEECH)
PREDICATES = dict(_glossary("predicate", _PREDICATES))
#: By (verb, noun of the object).
SENSES: dict[tuple[str, str], Verb] = {}
for _name, _words in rows(_SENSES):
    _lemma, _, _object = _name.partition(" ")
    SENSES[_lemma, _object] = _verb(_words)
IRREGULAR: dict[str, list[str]] = dict(rows(_IRREGULAR))
