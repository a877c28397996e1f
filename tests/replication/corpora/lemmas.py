"""Every lemma that a story may use, by kind: what a language must have words for."""

from replication.corpora.grammar import lexicon

TRADES = [
    *lexicon.PROFESSIONS.values(),
    *lexicon.ANIMALS.values(),
    *lexicon.PERSON_MOODS.values(),
    *lexicon.ANIMAL_MOODS.values(),
]
DEEDS = {(verb, noun) for trade in TRADES for verb, nouns in trade.deeds for noun in nouns}
PLACES = {**lexicon.HOMES, **lexicon.RESORTS, **lexicon.WORKPLACES}
SETTINGS = {
    *((preposition, place) for place, preposition in (PLACES | lexicon.FURNITURE).items()),
    *(("to", place) for place in PLACES),
}
NOUNS = {
    *lexicon.PROFESSIONS,
    *lexicon.ANIMALS,
    *lexicon.TREASURES,
    *lexicon.TOYS,
    *lexicon.SCENERY,
    *PLACES,
    *lexicon.FURNITURE,
    *(noun for _, noun in DEEDS),
    *(gift for trade in TRADES for gift in trade.gifts),
}
VERBS = {
    *"be have live work like find look sell show go".split(),
    *(verb for verb, _ in DEEDS),
    *(verb for trade in TRADES for verb in trade.alone),
    *(verb for verbs in (*lexicon.ENCOUNTERS.values(), *lexicon.SELF_CARE.values()) for verb in verbs),
    *lexicon.THANKING,
    *lexicon.LOSING,
    *lexicon.KEEPING,
    *lexicon.PLAYING,
    *lexicon.GIVING,
    *lexicon.TRAVEL,
    *lexicon.LIKING,
    *lexicon.OWNING,
    *lexicon.BELIEF,
    *lexicon.TOGETHER,
    *lexicon.POSTURES,
    *lexicon.SCENERY.values(),
    "look for",
}
SPEECH = {"ask", *lexicon.ANSWERING, *lexicon.EXCLAIMING}
ADJECTIVES = {
    *lexicon.PLACE_TRAITS,
    *lexicon.COLOURS,
    *lexicon.TRAITS,
    *lexicon.ANIMAL_TRAITS,
    *lexicon.PRAISE,
    *lexicon.OBJECT_TRAITS,
}
MOODS = {*lexicon.PERSON_MOODS, *lexicon.ANIMAL_MOODS}
ADVERBS = {*lexicon.MANNERS, *lexicon.FREQUENCIES}
TIMES = {*lexicon.MOMENTS, *lexicon.TIMES_OF_DAY, *lexicon.SEASONS}
NUMBERS = {*lexicon.COUNTS, *(age for ages in lexicon.AGES.values() for age in ages)}
CONJUNCTIONS = "because while although when and but that".split()
MODALS = "can must want".split()
