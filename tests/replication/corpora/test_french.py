"""French: golden sentences, and laws that hold in whatever a story says."""

import re
from itertools import pairwise

import lemmas
import pytest
from scenes import ANNA, NORA, SCENES, TOM, WOMEN, at, it

from replication.corpora.documents import Sentence
from replication.corpora.grammar import lexicon, story
from replication.corpora.grammar.clauses import Clause, Entity, Mention, Pair, Utterance
from replication.corpora.grammar.french import forms as french_forms
from replication.corpora.grammar.french import lexicon as french_lexicon
from replication.corpora.grammar.french import nouns as french_nouns
from replication.corpora.grammar.french import sentences as french
from replication.corpora.grammar.french import verbs as french_verbs
from replication.dice import Dice

GOLDEN = {
    "state": "Anna habitait dans le village calme .",
    "contraction with a feminine": "Il a couru jusqu' à la vieille église .",
    "near": "Tom habitait près du port .",
    "elided place": "Elle travaillait à l' école .",
    "singular stairs": "Le couteau reposait sous l' escalier .",
    "named": "Elle aimait bien un vieux fermier nommé Tom .",
    "appositive": "Nora , une vieille peintre , travaillait dans le studio .",
    "bare profession": "Anna est boulangère .",
    "described profession": "C' est une vieille boulangère .",
    "relative subject": "Tom était un fermier qui avait une lampe sombre .",
    "relative object": "Elle a trouvé la lampe sombre que Tom avait perdue .",
    "distinction": "Les trois navigateurs qui habitaient sur l' île ont chanté .",
    "age": "Elle avait quarante ans .",
    "adjective": "Les trois navigateurs étaient fiers .",
    "hunger": "Elle avait faim .",
    "boredom": "Elle s' ennuyait .",
    "group of women": "Elles sont retournées au marché .",
    "mixed group": "Ils sont allés dans la vallée sombre .",
    "pair": "Anna et la peintre timide sont venues à la boulangerie .",
    "gift": "Il a donné un petit gâteau à Max .",
    "known gift": "Tom a montré sa bouilloire rouge à la boulangère .",
    "two pronouns": "Elle la lui a montrée .",
    "recipients": "Nora a vendu de beaux œufs aux trois navigateurs .",
    "dative verb": "Il a aidé l' étudiant .",
    "trust": "Il lui faisait confiance .",
    "prepositional object": "Il a attendu le grand étudiant dans la forêt .",
    "thought of a thing": "Il y pensait .",
    "memory": "Elle se souvenait qu' il était timide .",
    "play": "Elle a joué du violon .",
    "mass": "Il a bu de l' eau .",
    "negated mass": "Il n' a pas bu d' eau .",
    "negated thing": "Elle n' a pas nettoyé la lampe .",
    "negated verb": "Elle n' a pas chanté .",
    "negated number": "Elle n' a pas vendu deux tapis .",
    "never": "Elle ne mange jamais de fromage .",
    "animal eats": "Le chien mange une saucisse .",
    "often": "Tom lui rendait souvent visite .",
    "still": "Elle aimait encore la lampe .",
    "manner": "Il a porté soigneusement la bouilloire .",
    "reflexive": "Le matin , elle s' est habillée .",
    "rest": "Elle se reposait .",
    "perfect": "Elle est allée sur la plage .",
    "prospective": "Elle achètera une nouvelle épée .",
    "would": "Elle achèterait une tourte .",
    "want": "Il veut l' inviter .",
    "cannot": "Elle ne pouvait pas la trouver .",
    "must": "Il devait laisser tomber une cuillère .",
    "separated": "Soudain , il a offert des pommes à Anna .",
    "owner's name": "La lampe sombre de Max se trouvait derrière la porte .",
    "owner described": "La bouilloire rouge du grand étudiant était sur la table .",
    "possessive before a vowel": "Il admirait son horloge .",
    "because first": "Comme elle était fatiguée , elle a dormi .",
    "because last": "Il a dormi parce qu' il était fatigué .",
    "when it was": "Quand le soleil brillait , il a chanté .",
    "when it is": "Quand Anna retourne dans la ville , il voit le chien .",
    "although": "Même s' il avait soixante ans , Anna s' est cachée .",
    "but": "Il a cherché la lampe , mais il ne pouvait pas la trouver .",
    "and": "Il a la bouilloire et elle travaille .",
    "known event": "Il savait qu' elle l' avait vue .",
    "where": "« Où habites -tu ? » a demandé Tom à Anna .",
    "how old": "« Anna , quel âge a le chien ? » a demandé Tom .",
    "whether": "« Est-ce que tu as une bouilloire rouge ? » lui a -t-il demandé .",
    "whom": "« Qui est-ce que tu aimes bien ? » a -t-il demandé .",
    "exclamation": "« Je te vois ! » crie -t-il à la boulangère .",
    "my and your": "« J' ai nettoyé ta bouilloire » , lui a dit Tom .",
    "female animal": "La jeune chienne a poursuivi le chat .",
    "invariable colour": "Il a trouvé les lampes orange .",
}
#: Singular nouns by gender: a table of its own, to check the lexicon against.
GENDERS = {
    "m": "chapeau parapluie vélo miroir panier tambour télescope vase manteau couteau globe collier ruban sifflet village"
    " château moulin pont port canal marché bazar parc musée café puits jardin grenier pré verger navire toit étang"
    " soleil vent brouillard pain gâteau blé livre crayon poisson arbre bateau lit violon billet poème feu clou"
    " message contrat verre avion moteur atelier hôpital escalier aéroport oreiller œuf boulanger chien cheval lait",
    "f": "bouilloire lampe horloge écharpe bague boîte clé cloche bougie théière poupée boussole valise échelle lanterne"
    " balle plume forêt vallée tour ville rivière mer église gare colline île montagne foire place plage fontaine"
    " boulangerie cuisine cabane usine école ferme auberge scène table chaise étagère porte lune neige pluie tempête"
    " carte lettre pomme épée robe fleur rose tulipe eau viande noix saucisse boulangère infirmière jument louve oie",
}
GENDER_OF = {noun: gender for gender, nouns in GENDERS.items() for noun in nouns.split()}
FITS = {
    **dict.fromkeys("un le du au ce".split(), "m"),
    **dict.fromkeys("une la ma ta sa".split(), "f"),
    **dict.fromkeys("mon ton son".split(), "m"),
}
#: Adjectives with two forms.
MASCULINE = {entry.masculine for entry in french_lexicon.ADJECTIVES.values() if entry.masculine != entry.feminine}
FEMININE = {entry.feminine for entry in french_lexicon.ADJECTIVES.values() if entry.masculine != entry.feminine}
#: French words that are English ones too.
HOMOGRAPHS = set(
    """
    admire album atlas biscuit cage canal cave costume court distance file forge globe impatient instrument invite
    machine message mine mule observe orange page piano plan portrait pot rage robot rose sandwich sauce six stand
    strict studio table tremble tunnel turbine vase verdict village volume
    """.split()
)
VOWEL = re.compile(r"[aeiouéèêâîôûœ]|h(?!ib|ér|ar)", re.IGNORECASE)


def utterances(seed: int, documents: int) -> list[Utterance]:
    dice = Dice(seed)
    return [utterance for _ in range(documents) for utterance in story.tell(dice)]


@pytest.fixture(scope="module")
def said() -> list[tuple[Utterance, Sentence]]:
    return [(one, french.sentence(one)) for seed in range(3) for one in utterances(seed, 80)]


@pytest.mark.parametrize("name", SCENES)
def test_golden_sentences(name):
    assert " ".join(french.sentence(SCENES[name]).words) == GOLDEN[name]


def test_determiners_have_the_gender_of_their_nouns(said):
    seen = set()
    for _, sentence in said:
        words = sentence.words
        for index, word in enumerate(words):
            if word not in GENDER_OF or sentence.tags[index] != "NOUN":
                continue
            has_adjective = index and sentence.tags[index - 1] == "ADJ" and words[index - 2].lower() in FITS
            determiner = words[index - 2 if has_adjective else index - 1].lower()
            if determiner in FITS and not (determiner in ("mon", "ton", "son") and VOWEL.match(word)):
                seen.add(word)
                assert GENDER_OF[word] in FITS[determiner], " ".join(words)
    assert len(seen) > 0.6 * len(GENDER_OF)


def test_adjectives_agree_with_their_nouns(said):
    checked = 0
    for _, sentence in said:
        tagged = list(zip(sentence.words, sentence.tags, sentence.chains, strict=True))
        for one, other in pairwise(tagged):
            if {one[1], other[1]} != {"NOUN", "ADJ"} or one[2] != other[2] or one[2] < 0:
                continue
            noun, adjective = (one, other) if one[1] == "NOUN" else (other, one)
            gender = GENDER_OF.get(noun[0])
            if gender and adjective[0] in MASCULINE | FEMININE:
                checked += 1
                assert adjective[0] in (MASCULINE if gender == "m" else FEMININE), " ".join(sentence.words)
    assert checked > 200


def test_elision_is_complete_and_only_before_vowels(said):
    for _, sentence in said:
        for word, following in pairwise(map(str.lower, sentence.words)):
            if word in ("l'", "d'", "qu'", "n'", "s'", "m'", "t'", "j'", "c'"):
                assert VOWEL.match(following) or following == "y", f"{word} {following}"
            elif word in ("le", "la", "de", "que", "ne", "se", "me", "te", "je", "ce"):
                assert not VOWEL.match(following), f"{word} {following}"


def test_prepositions_contract_with_articles(said):
    for _, sentence in said:
        tagged = zip(sentence.words, sentence.tags, strict=True)
        for (word, _), (following, tag) in pairwise(tagged):
            assert not (word.lower() in ("de", "à") and following in ("le", "les") and tag == "DET")


def test_possessives_and_adjectives_before_vowels(said):
    for _, sentence in said:
        for word, following in pairwise(map(str.lower, sentence.words)):
            if word in ("ma", "ta", "sa"):
                assert not VOWEL.match(following), f"{word} {following}"
            if word in ("vieil", "bel", "nouvel"):
                assert VOWEL.match(following), f"{word} {following}"


def test_negation_has_two_parts(said):
    for _, sentence in said:
        words = [word.lower() for word in sentence.words]
        steps = sum(word == "pas" and tag == "NOUN" for word, tag in zip(words, sentence.tags, strict=True))
        assert words.count("ne") + words.count("n'") == words.count("pas") + words.count("jamais") - steps


def test_participles_after_etre_agree_with_the_subject():
    returned = {
        "Anna est retournée": Mention(ANNA, "name"),
        "Tom est retourné": Mention(TOM, "name"),
        "Elles sont retournées": it(WOMEN),
        "Anna et Nora sont retournées": Pair(WOMEN, Mention(ANNA, "name"), Mention(NORA, "name")),
    }
    for start, subject in returned.items():
        words = french.sentence(Clause("return", subject, setting=at("to", "market"))).words
        assert " ".join(words).startswith(start + " ")


def test_a_group_is_feminine_if_all_of_it_is():
    goat, dog = Entity("goat", 1), Entity("dog", 2)
    for other, expected in ((goat, "Elles"), (dog, "Ils")):
        group = Entity("group", 3, plural=True, members=(ANNA, other))
        assert french.sentence(Clause("sing", it(group))).words[0] == expected


def test_the_past_of_events_states_and_habits():
    event, state = Clause("find", it(ANNA), it(TOM)), Clause("admire", it(ANNA), it(TOM))
    habit = Clause("find", it(ANNA), it(TOM), frequency="always")
    found = [" ".join(french.sentence(clause).words) for clause in (event, state, habit)]
    assert found == ["Elle l' a trouvé .", "Elle l' admirait .", "Elle le trouvait toujours ."]


def test_clitics_stand_in_their_order():
    lamp = Entity("lamp", 7)
    me = Clause("show", it(ANNA), it(lamp), Mention(TOM, "speaker"), tense="present")
    him = Clause("show", it(ANNA), it(lamp), it(TOM), tense="present", negative=True)
    wanted = Clause("show", it(ANNA), it(lamp), it(TOM), tense="present", modal="want")
    found = [" ".join(french.sentence(clause).words) for clause in (me, him, wanted)]
    assert found == ["Elle me la montre .", "Elle ne la lui montre pas .", "Elle veut la lui montrer ."]


def test_commas_and_marks_do_not_pile_up(said):
    for _, sentence in said:
        assert not re.search(r", [.,!?]", " ".join(sentence.words))


def test_a_seed_is_a_text():
    several = utterances(9, 20)
    forward = [french.sentence(one) for one in several]
    assert [french.sentence(one) for one in reversed(several)] == forward[::-1]
    assert [french.sentence(one) for one in utterances(9, 20)] == forward


def test_no_english_word_is_left_over(said):
    vocabulary = {word for kind in (lemmas.NOUNS, lemmas.VERBS, lemmas.ADJECTIVES, lemmas.ADVERBS) for word in kind}
    for _, sentence in said:
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            if tag not in ("PROPN", "PUNCT"):
                assert word.lower() not in vocabulary - HOMOGRAPHS, " ".join(sentence.words)


def test_the_lexicon_is_complete():
    for noun in lemmas.NOUNS:
        assert french_nouns.NOUNS[noun]
    for verb in lemmas.VERBS:
        assert french_verbs.VERBS[verb]
    for verb in lemmas.SPEECH:
        assert french_verbs.SPEECH[verb]
    for adjective in lemmas.ADJECTIVES | lemmas.MOODS - french_verbs.PREDICATES.keys():
        assert french_lexicon.ADJECTIVES[adjective]
    for glossary, kind in (
        (french_lexicon.ADVERBS, lemmas.ADVERBS),
        (french_lexicon.TIMES, lemmas.TIMES),
        (french_lexicon.NUMBERS, lemmas.NUMBERS),
        (french_lexicon.CONJUNCTIONS, lemmas.CONJUNCTIONS),
        (french_lexicon.MODALS, lemmas.MODALS),
        (french_lexicon.SETTINGS, lemmas.SETTINGS),
    ):
        for lemma in kind:
            assert glossary[lemma]


def test_every_deed_can_be_said():
    for verb, noun in lemmas.DEEDS:
        thing = Mention(Entity(noun, plural=noun in lexicon.PLURAL_ONLY), "indefinite")
        for aspect in ("simple", "perfect", "progressive", "prospective"):
            assert french.sentence(Clause(verb, it(ANNA), thing, aspect=aspect)).words[0] == "Elle"


@pytest.mark.parametrize(
    ("verb", "forms"),
    {
        "chanter": "chante chantes chante chantent chantait chantera",
        "acheter": "achète achètes achète achètent achetait achètera",
        "appeler": "appelle appelles appelle appellent appelait appellera",
        "nettoyer": "nettoie nettoies nettoie nettoient nettoyait nettoiera",
        "envoyer": "envoie envoies envoie envoient envoyait enverra",
        "posséder": "possède possèdes possède possèdent possédait possédera",
        "manger": "mange manges mange mangent mangeait mangera",
        "lancer": "lance lances lance lancent lançait lancera",
        "remplir": "remplis remplis remplit remplissent remplissait remplira",
        "attendre": "attends attends attend attendent attendait attendra",
        "venir": "viens viens vient viennent venait viendra",
    }.items(),
)
def test_conjugation(verb, forms):
    persons = [(1, False), (2, False), (3, False), (3, True)]
    found = [french_forms.finite(verb, "present", *one) for one in persons]
    others = [french_forms.finite(verb, form, 3, False) for form in ("imparfait", "future")]
    assert found + others == forms.split()


def test_plurals():
    found = {noun: french_nouns.plural(noun) for noun in ("cheval", "gâteau", "souris", "fer à cheval", "clou", "bleu")}
    assert list(found.values()) == ["chevaux", "gâteaux", "souris", "fers à cheval", "clous", "bleus"]
