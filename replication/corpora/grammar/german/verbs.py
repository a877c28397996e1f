"""German verbs: what each verb of the lexicon is called, what it governs, and the forms that no rule gives."""

from typing import NamedTuple

from replication.corpora.grammar.glossary import Glossary, rows


class Verb(NamedTuple):
    """A verb without its separable prefix."""

    infinitive: str
    #: The separable prefix, or empty.
    prefix: str = ""
    #: Has the perfect with "sein".
    moves: bool = False
    is_reflexive: bool = False
    #: The case of the object, and the preposition before it if there is one.
    case: str = "acc"
    preposition: str = ""


#: Infinitive after a separable prefix and "|"; "sein" for a perfect with it; "sich"; "dat"; a preposition with its case.
_VERBS = """
be: sein sein; have: haben; live: wohnen; work: arbeiten; like: mögen; love: lieben; admire: bewundern
trust: vertrauen dat; own: besitzen; keep: behalten; find: finden; hide: verstecken; look for: suchen
look at: an|sehen; look: sehen; think of: denken an acc; think: denken; know: wissen; say: sagen; believe: glauben
remember: erinnern sich an acc; hear: hören; see: sehen; greet: begrüßen; visit: besuchen; help: helfen dat
meet: treffen; thank: danken dat; call: rufen; follow: folgen sein dat; hug: umarmen; invite: ein|laden
wait for: warten auf acc; wait: warten; listen to: zu|hören dat; listen: zu|hören dat; watch: beobachten
chase: verfolgen; avoid: meiden; smile at: an|lächeln; smile: lächeln
walk: laufen sein; go: gehen sein; run: rennen sein; hurry: eilen sein; return: zurück|kehren sein; come: kommen sein
ride: reiten sein
wash: waschen; dress: an|ziehen; warm: wärmen; comb: kämmen; shake: schütteln; scratch: zerkratzen
give: geben; show: zeigen; bring: bringen; send: schicken; offer: an|bieten; sell: verkaufen
lose: verlieren; forget: vergessen; clean: putzen; carry: tragen; hold: halten; touch: berühren; paint: bemalen
chew: zerkauen; guard: bewachen; play with: spielen mit dat; stand: stehen; lie: liegen
talk: reden; laugh: lachen; sing: singen; dance: tanzen; rest: aus|ruhen sich
shine: scheinen; blow: wehen; fall: fallen sein; rise: auf|gehen sein; rage: toben; lift: lichten sich

hum: summen; whistle: pfeifen; bake: backen; knead: kneten; sift: sieben; dig: graben; plant: pflanzen; milk: melken
feed: füttern; harvest: ernten; read: lesen; correct: korrigieren; draw: zeichnen; row: rudern; tie: knüpfen
raise: hissen; load: beladen; bandage: verbinden; mix: mischen; cure: heilen; write: schreiben; taste: probieren
cook: kochen; fry: braten; peel: schälen; water: gießen; cut: schneiden; pull: ziehen; dream: träumen
frame: rahmen; catch: fangen; mend: flicken; smoke: räuchern; saw: sägen; build: bauen; glue: leimen
bow: verbeugen sich; play: spielen; practise: üben; tune: stimmen; invent: erfinden; tear: zerreißen; buy: kaufen
creep: schleichen sein; track: auf|spüren; set: auf|stellen; sharpen: spitzen; light: an|zünden; sit: sitzen; sew: nähen
measure: messen; iron: bügeln; sweat: schwitzen; hammer: hämmern; forge: schmieden; heat: erhitzen; bend: biegen
study: studieren; borrow: aus|leihen; copy: ab|schreiben; boil: aus|kochen; fold: falten; deliver: zu|stellen
seal: versiegeln; saddle: satteln; shout: schreien; count: zählen; weigh: wiegen; shear: scheren; carve: schnitzen
make: machen; cough: husten; push: schieben; break: zerbrechen; march: marschieren sein; polish: polieren; nod: nicken
sign: unterschreiben; open: öffnen; weave: weben; spin: spinnen; dye: färben; pour: ein|schenken; wipe: ab|wischen
serve: servieren; fill: füllen; shape: formen; fire: brennen; wave: winken; fly: fliegen sein; check: prüfen
whisper: flüstern; sort: sortieren; stamp: stempeln; dust: ab|stauben; repair: reparieren; collect: sammeln
pick: pflücken; test: testen; oil: ölen; observe: beobachten; wear: tragen; melt: schmelzen

bark: bellen; growl: knurren; bury: vergraben; fetch: holen; purr: schnurren; sleep: schlafen; jump: springen sein
drink: trinken; steal: stehlen; gallop: galoppieren sein; neigh: wiehern; eat: essen; hunt: jagen; smell: riechen
climb: klettern sein; bleat: meckern; croak: krächzen; crack: knacken; bray: iahen; kick: treten gegen acc
hop: hoppeln sein; nibble: knabbern an dat; hoot: rufen; roar: brüllen; squawk: kreischen; chatter: plappern
repeat: wiederholen; gather: sammeln; howl: heulen; snore: schnarchen; swim: schwimmen sein; hiss: zischen

yawn: gähnen; cry: weinen; sigh: seufzen; complain: beschweren sich; throw: werfen; order: bestellen
tremble: zittern; drop: fallen|lassen; sniff: beschnuppern
"""
#: Verbs that depend on the object. An empty object is none, "self" a reflexive one, "that" a clause.
_SENSES = """
paint portrait: malen; paint landscape: malen; paint : malen; scratch self: kratzen; fly plane: fliegen
fly glider: fliegen; pull weed: aus|reißen; hammer nail: ein|schlagen; cut branch: ab|schneiden
carry message: überbringen; dig coal: ab|bauen; dig copper: ab|bauen; load barrel: verladen; tie rope: verknoten
break rock: zerschlagen; break fence: um|reißen; plant clover: säen; correct mistake: verbessern; study : lernen
study grammar: lernen; study history: lernen
"""
#: Verbs that frame direct speech, without and with an addressee.
_SPEECH = """
say: sagen; say to: sagen zu dat; ask: fragen; ask to: fragen; answer: antworten; answer to: antworten dat
reply: erwidern; reply to: erwidern dat; shout: rufen; shout to: zu|rufen dat; cry: schreien; cry to: zu|schreien dat
whisper: flüstern; whisper to: zu|flüstern dat
"""
#: Present (third person), preterite and participle of the strong and mixed verbs.
_STRONG = """
backen: bäckt backte gebacken; behalten: behält behielt behalten; besitzen: besitzt besaß besessen
biegen: biegt bog gebogen; bieten: bietet bot geboten; braten: brät briet gebraten; brennen: brennt brannte gebrannt
bringen: bringt brachte gebracht; denken: denkt dachte gedacht; erfinden: erfindet erfand erfunden
essen: isst aß gegessen; fallen: fällt fiel gefallen; fangen: fängt fing gefangen; finden: findet fand gefunden
fliegen: fliegt flog geflogen; fressen: frisst fraß gefressen; geben: gibt gab gegeben; gehen: geht ging gegangen
gießen: gießt goss gegossen; graben: gräbt grub gegraben; haben: hat hatte gehabt; halten: hält hielt gehalten
helfen: hilft half geholfen; kommen: kommt kam gekommen; laden: lädt lud geladen; beladen: belädt belud beladen
verladen: verlädt verlud verladen; lassen: lässt ließ gelassen; laufen: läuft lief gelaufen; leihen: leiht lieh geliehen
lesen: liest las gelesen; liegen: liegt lag gelegen; meiden: meidet mied gemieden; melken: melkt molk gemolken
messen: misst maß gemessen; mögen: mag mochte gemocht; pfeifen: pfeift pfiff gepfiffen; reißen: reißt riss gerissen
reiten: reitet ritt geritten; rennen: rennt rannte gerannt; riechen: riecht roch gerochen; rufen: ruft rief gerufen
scheinen: scheint schien geschienen; scheren: schert schor geschoren; schieben: schiebt schob geschoben
schlafen: schläft schlief geschlafen; schlagen: schlägt schlug geschlagen; zerschlagen: zerschlägt zerschlug zerschlagen
schleichen: schleicht schlich geschlichen; schmelzen: schmilzt schmolz geschmolzen
schneiden: schneidet schnitt geschnitten; schreiben: schreibt schrieb geschrieben
schreien: schreit schrie geschrien; schwimmen: schwimmt schwamm geschwommen; sehen: sieht sah gesehen
sein: ist war gewesen; singen: singt sang gesungen; sitzen: sitzt saß gesessen; spinnen: spinnt spann gesponnen
springen: springt sprang gesprungen; stehen: steht stand gestanden; stehlen: stiehlt stahl gestohlen
tragen: trägt trug getragen; treffen: trifft traf getroffen; treten: tritt trat getreten; trinken: trinkt trank getrunken
unterschreiben: unterschreibt unterschrieb unterschrieben; verbinden: verbindet verband verbunden
überbringen: überbringt überbrachte überbracht
vergessen: vergisst vergaß vergessen; vergraben: vergräbt vergrub vergraben; verlieren: verliert verlor verloren
waschen: wäscht wusch gewaschen; werfen: wirft warf geworfen; wiegen: wiegt wog gewogen; wissen: weiß wusste gewusst
zerbrechen: zerbricht zerbrach zerbrochen; zerreißen: zerreißt zerriss zerrissen; ziehen: zieht zog gezogen
können: kann konnte gekonnt; müssen: muss musste gemusst; wollen: will wollte gewollt; werden: wird würde geworden
wiederholen: wiederholt wiederholte wiederholt
"""


def _verb(words: list[str]) -> Verb:
    name, *rest = words
    prefix, _, infinitive = name.rpartition("|")
    governed = [word for word in rest if word not in ("sein", "sich")]
    case = governed.pop() if governed else "acc"
    return Verb(infinitive, prefix, "sein" in rest, "sich" in rest, case, " ".join(governed))


def _glossary(kind: str, table: str) -> Glossary:
    return Glossary("German", kind, [(lemma, _verb(words)) for lemma, words in rows(table)])


VERBS = _glossary("verb", _VERBS)
SPEECH = _glossary("verb of speech", _SPEECH)
#: What an animal does has another name then.
OF_ANIMALS = {"eat": Verb("fressen")}
#: By (verb, noun of the object).
SENSES: dict[tuple[str, str], Verb] = {}
for _name, _words in rows(_SENSES):
    _lemma, _, _object = _name.partition(" ")
    SENSES[_lemma, _object] = _verb(_words)
STRONG: dict[str, list[str]] = dict(rows(_STRONG))
