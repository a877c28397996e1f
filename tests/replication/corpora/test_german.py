"""German: golden sentences, and laws that hold in whatever a story says."""

import re

import lemmas
import pytest
from scenes import ANNA, SCENES, it

from replication.corpora.documents import Sentence
from replication.corpora.grammar import lexicon, story
from replication.corpora.grammar.clauses import Clause, Entity, Mention, Subordination, Utterance
from replication.corpora.grammar.concepts import number_nodes
from replication.corpora.grammar.german import forms as german_forms
from replication.corpora.grammar.german import lexicon as german_lexicon
from replication.corpora.grammar.german import nouns as german_nouns
from replication.corpora.grammar.german import sentences as german
from replication.corpora.grammar.german import verbs as german_verbs
from replication.dice import Dice

GOLDEN = {
    "state": "Anna wohnte im ruhigen Dorf .",
    "contraction with a feminine": "Er rannte zur alten Kirche .",
    "near": "Tom wohnte beim Hafen .",
    "elided place": "Sie arbeitete in der Schule .",
    "singular stairs": "Das Messer lag unter der Treppe .",
    "named": "Sie mochte einen alten Bauern namens Tom .",
    "appositive": "Nora , eine alte Malerin , arbeitete im Atelier .",
    "bare profession": "Anna ist Bäckerin .",
    "described profession": "Sie ist eine alte Bäckerin .",
    "relative subject": "Tom war ein Bauer , der eine dunkle Lampe hatte .",
    "relative object": "Sie fand die dunkle Lampe , die Tom verloren hatte .",
    "distinction": "Die drei Matrosen , die auf der Insel wohnten , sangen .",
    "age": "Sie war vierzig Jahre alt .",
    "adjective": "Die drei Matrosen waren stolz .",
    "hunger": "Sie war hungrig .",
    "boredom": "Sie war gelangweilt .",
    "group of women": "Sie kehrten zum Markt zurück .",
    "mixed group": "Sie gingen ins dunkle Tal .",
    "pair": "Anna und die schüchterne Malerin kamen in die Bäckerei .",
    "gift": "Er gab Max einen kleinen Kuchen .",
    "known gift": "Tom zeigte der Bäckerin seinen roten Kessel .",
    "two pronouns": "Sie zeigte sie ihm .",
    "recipients": "Nora verkaufte den drei Matrosen schöne Eier .",
    "dative verb": "Er half dem Studenten .",
    "trust": "Er vertraute ihr .",
    "prepositional object": "Er wartete im Wald auf den großen Studenten .",
    "thought of a thing": "Er dachte daran .",
    "memory": "Sie erinnerte sich , dass er schüchtern war .",
    "play": "Sie spielte eine Geige .",
    "mass": "Er trank Wasser .",
    "negated mass": "Er trank kein Wasser .",
    "negated thing": "Sie putzte die Lampe nicht .",
    "negated verb": "Sie sang nicht .",
    "negated number": "Sie verkaufte nicht zwei Teppiche .",
    "never": "Sie isst nie Käse .",
    "animal eats": "Der Hund frisst eine Wurst .",
    "often": "Tom besuchte sie oft .",
    "still": "Sie liebte immer noch die Lampe .",
    "manner": "Er trug vorsichtig den Kessel .",
    "reflexive": "Am Morgen zog sie sich an .",
    "rest": "Sie ruhte sich gerade aus .",
    "perfect": "Sie ist an den Strand gegangen .",
    "prospective": "Sie wird ein neues Schwert kaufen .",
    "would": "Sie würde eine Pastete kaufen .",
    "want": "Er will sie einladen .",
    "cannot": "Sie konnte sie nicht finden .",
    "must": "Er musste einen Löffel fallen lassen .",
    "separated": "Plötzlich bot er Anna Äpfel an .",
    "owner's name": "Max' dunkle Lampe stand hinter der Tür .",
    "owner described": "Der rote Kessel des großen Studenten war auf dem Tisch .",
    "possessive before a vowel": "Er bewunderte seine Uhr .",
    "because first": "Weil sie müde war , schlief sie .",
    "because last": "Er schlief , weil er müde war .",
    "when it was": "Als die Sonne schien , sang er .",
    "when it is": "Wenn Anna in die Stadt zurückkehrt , sieht er den Hund .",
    "although": "Obwohl er sechzig Jahre alt war , versteckte sich Anna .",
    "but": "Er suchte die Lampe , aber er konnte sie nicht finden .",
    "and": "Er hat den Kessel und sie arbeitet .",
    "known event": "Er wusste , dass sie sie sah .",
    "where": "„ Wo wohnst du ? “ , fragte Tom Anna .",
    "how old": "„ Anna , wie alt ist der Hund ? “ , fragte Tom .",
    "whether": "„ Hast du einen roten Kessel ? “ , fragte er sie .",
    "whom": "„ Wen magst du ? “ , fragte er .",
    "exclamation": "„ Ich sehe dich ! “ , ruft er der Bäckerin zu .",
    "my and your": "„ Ich habe deinen Kessel geputzt “ , sagte Tom zu ihr .",
    "female animal": "Die junge Hündin verfolgte die Katze .",
    "invariable colour": "Er fand die orangefarbenen Lampen .",
}
#: Nouns whose singular is not their plural, by gender: a table of its own, to check the lexicon against.
GENDERS = {
    "m": "Hut Schal Ring Korb Ball Mantel Wald Turm Fluss See Hafen Kanal Markt Park Platz Strand Garten Stall Tisch"
    " Stuhl Hund Fuchs Wolf Baum Brief Apfel Stein Topf Krug Fisch Mond Wind Sturm Bauer Arzt Koch Student Bahnhof Berg",
    "f": "Lampe Uhr Kiste Trommel Vase Glocke Kerze Puppe Leiter Laterne Feder Stadt Burg Mühle Brücke Kirche Insel Küche"
    " Schule Fabrik Höhle Wiese Katze Ziege Eule Gans Rose Tulpe Suppe Karte Sonne Tür Bühne Werkstatt Bäckerei Nuss",
    "n": "Fahrrad Fernrohr Band Dorf Schloss Tal Meer Museum Café Krankenhaus Büro Haus Dach Schiff Pferd Buch Ei Bild"
    " Gedicht Boot Schwert Hemd Kleid Brot Bett Huhn Schaf Seil Glas Regal Sofa Theater Gericht Gasthaus Atelier",
}
GENDER_OF = {noun: gender for gender, nouns in GENDERS.items() for noun in nouns.split()}
#: Which genders a determiner can have before a singular noun.
FITS = {
    **dict.fromkeys(["der"], "mf"),
    **dict.fromkeys(["den", "einen", "keinen", "meinen", "deinen", "seinen", "ihren"], "m"),
    **dict.fromkeys(["die", "eine", "keine", "meine", "deine", "seine", "ihre", "einer", "seiner", "zur"], "f"),
    **dict.fromkeys(["das", "ins", "ans"], "n"),
    **dict.fromkeys("dem einem seinem des ein kein mein dein sein im am zum beim vom".split(), "mn"),
}
#: German words that are English ones too.
HOMOGRAPHS = set(
    """
    album arm atlas ball boot deck den elegant gold hand hat herd hut museum park pier pilot plan planet ring robot
    rose sack see sofa stall stand student tunnel turbine vase wild wind wolf
    """.split()
)


def utterances(seed: int, documents: int) -> list[Utterance]:
    dice = Dice(seed)
    return [utterance for _ in range(documents) for utterance in story.tell(dice)]


@pytest.fixture(scope="module")
def said() -> list[tuple[Utterance, Sentence]]:
    return [(one, german.sentence(one)) for seed in range(3) for one in utterances(seed, 80)]


def first_verb(words: Sentence, start: int = 0) -> int:
    return next(index for index in range(start, len(words.words)) if words.tags[index] in ("VERB", "AUX"))


@pytest.mark.parametrize("name", SCENES)
def test_golden_sentences(name):
    assert " ".join(german.sentence(SCENES[name]).words) == GOLDEN[name]


def test_determiners_have_the_gender_of_their_nouns(said):
    seen = set()
    for _, sentence in said:
        words = sentence.words
        for index, word in enumerate(words):
            if word not in GENDER_OF or sentence.tags[index] != "NOUN":
                continue
            before = index - 2 if index and sentence.tags[index - 1] == "ADJ" else index - 1
            fitting = FITS.get(words[before].lower()) if before >= 0 else None
            if fitting:
                seen.add(word)
                assert GENDER_OF[word] in fitting, " ".join(words)
    assert len(seen) > 0.6 * len(GENDER_OF)


def test_adjectives_end_as_their_determiner_asks(said):
    checked = 0
    for _, sentence in said:
        for first, adjective, noun in zip(*(sentence.words[start:] for start in range(3)), strict=False):
            gender, first = GENDER_OF.get(noun), first.lower()
            if gender is None or sentence.tags[sentence.words.index(adjective)] != "ADJ":
                continue
            if first in ("ein", "kein", "sein", "mein", "dein"):
                ending = {"m": "er", "n": "es"}[gender]
            elif first in (
                "einen",
                "einem",
                "einer",
                "dem",
                "den",
                "im",
                "am",
                "zum",
                "beim",
                "zur",
                "seinen",
                "ihren",
            ):
                ending = "en"
            elif first in ("eine", "die", "das", "seine", "ihre"):
                ending = "e"
            else:
                continue
            checked += 1
            assert re.fullmatch(rf"\w+[^e]{ending}|müd{ending}", adjective), f"{first} {adjective} {noun}"
    assert checked > 300


def test_the_verb_is_second_in_main_clauses(said):
    checked = 0
    for utterance, sentence in said:
        if not isinstance(utterance, Clause) or "," in sentence.words or "namens" in sentence.words:
            continue
        finite = first_verb(sentence)
        before = sentence.words[:finite]
        checked += 1
        if utterance.time:
            time = [word for word, _ in german_lexicon.TIMES[utterance.time]]
            assert [word.lower() for word in before] == [word.lower() for word in time]
        else:
            assert before
            assert set(sentence.tags[:finite]) <= {"DET", "ADJ", "NOUN", "NUM", "PROPN", "PRON", "CCONJ"}
            assert sentence.chains[finite - 1] >= 0 or "NOUN" in sentence.tags[:finite]
    assert checked > 800


def test_the_verb_is_last_in_subordinate_clauses(said):
    checked = 0
    for utterance, sentence in said:
        if not isinstance(utterance, Subordination) or any(word in sentence.words for word in ("dass", "namens")):
            continue
        if utterance.fronted:
            end = sentence.words.index(",")
            assert sentence.tags[end + 1] in ("VERB", "AUX"), " ".join(sentence.words)
        else:
            end = len(sentence.words) - 1
        checked += 1
        assert sentence.tags[end - 1] in ("VERB", "AUX"), " ".join(sentence.words)
    assert checked > 200


def test_nouns_are_capitalised_and_nothing_else_is(said):
    for _, sentence in said:
        first = next(index for index, tag in enumerate(sentence.tags) if tag != "PUNCT")
        for index, (word, tag) in enumerate(zip(sentence.words, sentence.tags, strict=True)):
            if tag in ("NOUN", "PROPN"):
                assert word[0].isupper()
            elif index > first and word[0].isalpha():
                assert word[0].islower(), " ".join(sentence.words)


def test_pronouns_have_the_grammatical_gender_of_things():
    lamp, drum, knife = (Entity(noun, 3) for noun in ("lamp", "ladder", "knife"))
    found = [
        german.sentence(Clause("find", it(ANNA), Mention(thing, "pronoun"))).words[2]
        for thing in (lamp, drum, knife, Entity("kettle", 3))
    ]
    assert found == ["sie", "sie", "es", "ihn"]


def test_commas_and_marks_do_not_pile_up(said):
    for _, sentence in said:
        assert not re.search(r", [.,!?“]", " ".join(sentence.words))


def test_a_seed_is_a_text():
    once, again = ([german.sentence(one) for one in utterances(9, 20)] for _ in range(2))
    assert once == again


def test_no_english_word_is_left_over(said):
    vocabulary = {word for kind in (lemmas.NOUNS, lemmas.VERBS, lemmas.ADJECTIVES, lemmas.ADVERBS) for word in kind}
    for _, sentence in said:
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            if tag not in ("PROPN", "PUNCT"):
                assert word.lower() not in vocabulary - HOMOGRAPHS, " ".join(sentence.words)


def test_the_lexicon_is_complete():
    for noun in lemmas.NOUNS:
        assert german_nouns.NOUNS[noun]
    for verb in lemmas.VERBS:
        assert german_verbs.VERBS[verb]
    for verb in lemmas.SPEECH:
        assert german_verbs.SPEECH[verb]
        assert german_verbs.SPEECH[f"{verb} to"]
    for adjective in lemmas.ADJECTIVES | lemmas.MOODS:
        assert german_lexicon.ADJECTIVES[adjective]
    for glossary, kind in (
        (german_lexicon.ADVERBS, lemmas.ADVERBS),
        (german_lexicon.TIMES, lemmas.TIMES),
        (german_lexicon.NUMBERS, lemmas.NUMBERS),
        (german_lexicon.CONJUNCTIONS, lemmas.CONJUNCTIONS),
        (german_lexicon.MODALS, lemmas.MODALS),
        (german_lexicon.SETTINGS, lemmas.SETTINGS),
    ):
        for lemma in kind:
            assert glossary[lemma]


def test_every_deed_can_be_said():
    for verb, noun in lemmas.DEEDS:
        thing = Mention(Entity(noun, plural=noun in lexicon.PLURAL_ONLY), "indefinite")
        for aspect in ("simple", "perfect", "prospective"):
            assert german.sentence(Clause(verb, it(ANNA), thing, aspect=aspect)).words[0] == "Sie"


def test_concepts_only_with_numbers():
    assert german.sentence(SCENES["gift"]).concepts == []
    assert len(german.sentence(SCENES["gift"], number_nodes(SCENES["gift"])).concepts) == 7


@pytest.mark.parametrize(
    ("verb", "forms"),
    {
        "arbeiten": "arbeite arbeitest arbeitet arbeiten arbeitete",
        "zeichnen": "zeichne zeichnest zeichnet zeichnen zeichnete",
        "sammeln": "sammle sammelst sammelt sammeln sammelte",
        "klettern": "klettere kletterst klettert klettern kletterte",
        "halten": "halte hältst hält halten hielt",
        "laden": "lade lädst lädt laden lud",
        "lesen": "lese liest liest lesen las",
        "tanzen": "tanze tanzt tanzt tanzen tanzte",
        "wissen": "weiß weißt weiß wissen wusste",
        "wohnen": "wohne wohnst wohnt wohnen wohnte",
    }.items(),
)
def test_conjugation(verb, forms):
    persons = [(1, False), (2, False), (3, False), (3, True)]
    found = [german_forms.finite(verb, "present", *one) for one in persons]
    assert [*found, german_forms.finite(verb, "past", 3, False)] == forms.split()


def test_participles():
    expected = {
        "offer": "angeboten",
        "rest": "ausgeruht",
        "harvest": "geerntet",
        "bark": "gebellt",
        "paint": "bemalt",
        "repair": "repariert",
        "lose": "verloren",
        "drop": "fallen gelassen",
    }
    assert {verb: german_forms.participle(german_verbs.VERBS[verb]) for verb in expected} == expected
