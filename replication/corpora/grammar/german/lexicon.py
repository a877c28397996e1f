"""German words that are neither nouns nor verbs: adjectives, adverbs, numerals, prepositions of places, conjunctions."""

from replication.corpora.grammar.glossary import Glossary, rows

_ADJECTIVES = """
old: alt; young: jung; tall: groß; kind: nett; clever: klug; proud: stolz; brave: mutig; shy: schüchtern
famous: berühmt; lazy: faul; quiet: ruhig; cheerful: fröhlich; honest: ehrlich; strict: streng; poor: arm
rich: reich; elegant: elegant; curious: neugierig; generous: großzügig; stubborn: stur; strong: stark
friendly: freundlich; impatient: ungeduldig; fat: dick; wild: wild; gentle: sanft; ugly: hässlich
red: rot; blue: blau; green: grün; yellow: gelb; white: weiß; black: schwarz; brown: braun; golden: golden
orange: orangefarben; grey: grau; purple: violett; pink: rosafarben
small: klein; big: groß; dark: dunkel dunkl; lonely: einsam; cold: kalt; pretty: hübsch; strange: seltsam
peaceful: friedlich; beautiful: schön; wonderful: wunderbar; lovely: reizend; expensive: teuer teur; new: neu; little: klein
tired: müde müd; hungry: hungrig; happy: glücklich; sad: traurig; angry: wütend; thirsty: durstig; bored: gelangweilt
nervous: nervös; afraid: ängstlich
"""
#: Predicative form and the stem of the attributive forms.
ADJECTIVES = Glossary("German", "adjective", [(lemma, (words[0], words[-1])) for lemma, words in rows(_ADJECTIVES)])

_ADVERBS = """
slowly: langsam; quietly: leise; carefully: vorsichtig; quickly: schnell; happily: fröhlich; calmly: ruhig
eagerly: eifrig; secretly: heimlich; proudly: stolz; patiently: geduldig
often: oft; always: immer; sometimes: manchmal; still: immer noch; never: nie; again: wieder
"""
ADVERBS = Glossary("German", "adverb", rows(_ADVERBS))

_TIMES = """
then: dann/ADV; soon: bald/ADV; later: später/ADV; suddenly: plötzlich/ADV; one day: eines/NUM Tages/NOUN
afterwards: danach/ADV; finally: schließlich/ADV; in the morning: am/ADP Morgen/NOUN
in the evening: am/ADP Abend/NOUN; at night: in/ADP der/DET Nacht/NOUN; at noon: am/ADP Mittag/NOUN
every day: jeden/DET Tag/NOUN; in the afternoon: am/ADP Nachmittag/NOUN
in winter: im/ADP Winter/NOUN; in summer: im/ADP Sommer/NOUN; in spring: im/ADP Frühling/NOUN
in autumn: im/ADP Herbst/NOUN
"""
TIMES = Glossary(
    "German",
    "time expression",
    [(lemma, [tuple(word.split("/")) for word in words]) for lemma, words in rows(_TIMES)],
)

_NUMBERS = """
two: zwei; three: drei; four: vier; five: fünf; six: sechs; seven: sieben; nine: neun; eleven: elf; eighteen: achtzehn
nineteen: neunzehn; twenty: zwanzig; thirty: dreißig; forty: vierzig; fifty: fünfzig; sixty: sechzig; seventy: siebzig
eighty: achtzig; ninety: neunzig
"""
NUMBERS = Glossary("German", "number", [(lemma, word) for lemma, (word,) in rows(_NUMBERS)])

_CONJUNCTIONS = "because: weil; while: während; although: obwohl; and: und; but: aber; that: dass; when: als wenn"
#: The word in the past and in the present.
CONJUNCTIONS = Glossary(
    "German", "conjunction", [(lemma, (words[0], words[-1])) for lemma, words in rows(_CONJUNCTIONS)]
)

MODALS = Glossary("German", "modal verb", {"can": "können", "must": "müssen", "want": "wollen"}.items())

#: English and German preposition, the case, and the places where they go together.
_SETTINGS = """
in in dat: village forest castle valley tower town park museum cafe bakery hospital kitchen garden studio workshop
in in dat: theatre hut shop forge clinic office mine fortress cottage cellar library orchard factory dome barn kennel
in in dat: stable den shed burrow oak cave cage pine ravine
in an dat: college
in auf dat: attic meadow square
by an dat: river lake mill bridge sea well fountain
near bei dat: harbour church station canal
on auf dat: hill island mountain farm ship pier stage roof chimney pond table chair shelf floor sofa windowsill
on an dat: slope beach
at auf dat: market fair bazaar
at in dat: school inn
at an dat: court stall airport
under unter dat: bush stairs stove
behind hinter dat: door curtain
to in acc: village forest castle valley tower town park museum cafe bakery kitchen garden studio workshop theatre hut
to in acc: shop forge office mine fortress cottage cellar library orchard factory dome barn kennel stable den shed
to in acc: burrow cave cage ravine school inn
to zu dat: river lake mill bridge harbour church station canal market fair bazaar well fountain hospital college clinic
to zu dat: court stall airport farm oak pine bush
to auf acc: hill island mountain square attic meadow ship pier stage roof chimney
to an acc: sea beach slope pond
"""


def _settings(table: str) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    entries = ((name.split(), places) for name, places in rows(table))
    return [((relation, place), (word, case)) for (relation, word, case), places in entries for place in places]


#: By (relation, place): the preposition with its case.
SETTINGS = Glossary("German", "preposition of place", _settings(_SETTINGS))
#: A preposition that has swallowed the article.
CONTRACTIONS = {
    ("in", "dem"): "im",
    ("an", "dem"): "am",
    ("bei", "dem"): "beim",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
    ("in", "das"): "ins",
    ("an", "das"): "ans",
}
