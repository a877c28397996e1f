"""French words that are neither nouns nor verbs: adjectives, adverbs, numerals, prepositions of places, conjunctions."""

from typing import NamedTuple

from replication.corpora.grammar.glossary import Glossary, rows


class Adjective(NamedTuple):
    masculine: str
    feminine: str
    #: The masculine singular before a vowel.
    before_vowel: str


_ADJECTIVES = """
old: vieux vieille vieil; young: jeune; tall: grand grande; kind: gentil gentille; clever: intelligent intelligente
proud: fier fière; brave: courageux courageuse; shy: timide; famous: célèbre; lazy: paresseux paresseuse
quiet: calme; cheerful: joyeux joyeuse; honest: honnête; strict: strict stricte; poor: pauvre; rich: riche
elegant: élégant élégante; curious: curieux curieuse; generous: généreux généreuse; stubborn: têtu têtue
strong: fort forte; friendly: aimable; impatient: impatient impatiente; fat: gros grosse; wild: sauvage
gentle: doux douce; ugly: laid laide; red: rouge; blue: bleu bleue; green: vert verte; yellow: jaune
white: blanc blanche; black: noir noire; brown: brun brune; golden: doré dorée; orange: orange invariable
grey: gris grise; purple: violet violette; pink: rose; small: petit petite; big: grand grande; dark: sombre
lonely: isolé isolée; cold: froid froide; pretty: joli jolie; strange: étrange; peaceful: paisible
beautiful: beau belle bel; wonderful: merveilleux merveilleuse; lovely: ravissant ravissante
expensive: cher chère; new: nouveau nouvelle nouvel; little: petit petite; tired: fatigué fatiguée
happy: heureux heureuse; sad: triste; angry: fâché fâchée; nervous: nerveux nerveuse
"""
#: Those that stand before the noun.
PREPOSED = set("old young tall big small little fat beautiful pretty new kind".split())
_INVARIABLE = "invariable"


def _adjective(words: list[str]) -> Adjective:
    masculine, feminine = words[0], words[min(1, len(words) - 1)]
    return Adjective(
        masculine, masculine if feminine == _INVARIABLE else feminine, words[2] if words[2:] else masculine
    )


ADJECTIVES = Glossary("French", "adjective", [(lemma, _adjective(words)) for lemma, words in rows(_ADJECTIVES)])
INVARIABLE = {lemma for lemma, words in rows(_ADJECTIVES) if words[-1] == _INVARIABLE}

_ADVERBS = """
slowly: lentement/ADV; quietly: doucement/ADV; carefully: soigneusement/ADV; quickly: rapidement/ADV
happily: joyeusement/ADV; calmly: calmement/ADV; eagerly: avec/ADP empressement/NOUN; secretly: en/ADP secret/NOUN
proudly: fièrement/ADV; patiently: patiemment/ADV
often: souvent/ADV; always: toujours/ADV; sometimes: parfois/ADV; still: encore/ADV; never: jamais/ADV
again: de/ADP nouveau/ADV
"""
_TIMES = """
then: puis/ADV; soon: bientôt/ADV; later: plus/ADV tard/ADV; suddenly: soudain/ADV; one day: un/NUM jour/NOUN
afterwards: ensuite/ADV; finally: enfin/ADV; in the morning: le/DET matin/NOUN; in the evening: le/DET soir/NOUN
at night: la/DET nuit/NOUN; at noon: à/ADP midi/NOUN; every day: chaque/DET jour/NOUN
in the afternoon: l'/DET après-midi/NOUN; in winter: en/ADP hiver/NOUN; in summer: en/ADP été/NOUN
in spring: au/ADP printemps/NOUN; in autumn: en/ADP automne/NOUN
"""


def _phrases(kind: str, table: str) -> Glossary:
    """Entries of (word, tag) pairs."""
    entries = [(lemma, [tuple(word.split("/")) for word in words]) for lemma, words in rows(table)]
    return Glossary("French", kind, entries)


ADVERBS = _phrases("adverb", _ADVERBS)
TIMES = _phrases("time expression", _TIMES)
#: Frequencies that make an event of the past a habit.
HABITS = {"often", "always", "sometimes", "still", "never"}

_NUMBERS = """
two: deux; three: trois; four: quatre; five: cinq; six: six; seven: sept; nine: neuf; eleven: onze; eighteen: dix-huit
nineteen: dix-neuf; twenty: vingt; thirty: trente; forty: quarante; fifty: cinquante; sixty: soixante
seventy: soixante-dix; eighty: quatre-vingts; ninety: quatre-vingt-dix
"""
NUMBERS = Glossary("French", "number", [(lemma, word) for lemma, (word,) in rows(_NUMBERS)])

_CONJUNCTIONS = """
because: parce que | comme; while: pendant que; although: même si; when: quand; and: et; but: mais; that: que
"""
#: The words within the sentence, and those at its beginning.
CONJUNCTIONS = Glossary(
    "French",
    "conjunction",
    [(lemma, [part.split() for part in " ".join(words).split("|")]) for lemma, words in rows(_CONJUNCTIONS)],
)

MODALS = Glossary("French", "modal verb", {"can": "pouvoir", "must": "devoir", "want": "vouloir"}.items())

#: English preposition, French one ("_" between its words), and the places where they go together.
_SETTINGS = """
in dans: village forest castle valley tower town park bakery kitchen garden studio workshop attic hut shop forge meadow
in dans: mine fortress cottage cellar orchard dome barn kennel stable den shed burrow oak cave cage pine ravine
in à: museum cafe hospital theatre college clinic office library factory
in sur: square
by au_bord_de: river lake sea
by près_de: mill bridge well fountain
near près_de: harbour church station canal
on sur: hill island mountain ship pier stage roof chimney pond table chair shelf floor sofa windowsill slope beach
on à: farm
at à: market fair bazaar school inn court stall airport
under sous: bush stairs stove
behind derrière: door curtain
to à: village castle tower park museum cafe bakery kitchen garden studio workshop theatre hut shop forge college
to à: clinic office mine fortress cottage library orchard factory barn kennel stable den shed burrow cave school
to à: court inn stall airport farm river lake mill bridge sea harbour church station canal market fair bazaar
to à: well fountain hospital
to dans: forest valley town attic meadow cellar dome cage ravine
to sur: hill island mountain square beach ship pier stage roof
to vers: oak pine bush slope chimney pond
"""


def _settings(table: str) -> list[tuple[tuple[str, str], list[str]]]:
    entries = ((name.split(), places) for name, places in rows(table))
    return [((relation, place), word.split("_")) for (relation, word), places in entries for place in places]


#: By (relation, place): the words of the preposition.
SETTINGS = Glossary("French", "preposition of place", _settings(_SETTINGS))
