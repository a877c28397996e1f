"""Patterns of sentences that the narrator says, made of facts and events. Each is about one character."""

from dataclasses import replace

from replication.corpora.grammar import events, facts, lexicon
from replication.corpora.grammar.cast import Character
from replication.corpora.grammar.clauses import (
    Clause,
    Coordination,
    Entity,
    Form,
    Mention,
    NounPhrase,
    Setting,
    Subordination,
    Utterance,
)
from replication.corpora.grammar.stage import Stage


def _timed(stage: Stage, clause: Clause) -> Clause:
    """Perhaps with a time: the document's season, a time of day, or for what happens just once, a moment."""
    if not stage.dice.chance(0.3):
        return clause
    if stage.dice.chance(0.25):
        return replace(clause, time=stage.cast.season)
    is_single = not clause.negative and not clause.frequency and clause.aspect == "simple"
    times = lexicon.MOMENTS if is_single and stage.dice.chance(0.6) else lexicon.TIMES_OF_DAY
    return replace(clause, time=stage.dice.skewed(times))


def _happens(stage: Stage, who: Character, subject: NounPhrase | None = None) -> Clause:
    return events.viewed(stage, events.event(stage, who, subject))


def introduction(stage: Stage, who: Character) -> Utterance:
    """The first mention of a character says what it is, what it is like, and most often one fact more."""
    entity = who.entity
    patron = who.owner or next((one for one in stage.present if stage.cast.likes[one] is who), None)
    stage.present.append(who)
    if patron in stage.present and stage.dice.chance(0.6):
        subject = stage.mention(patron.entity)
        stage.tell(patron.entity, "animal" if who.owner else "liking")
        return Clause("have" if who.owner else "like", subject, _first(stage, who, "named"), tense=stage.tense)
    if entity.name and stage.dice.chance(0.4):
        what = _first(stage, who, "indefinite")
        relative = facts.state_one(stage, who, facts.RELATIVES, Mention(entity, "relative"))
        return Clause("be", Mention(entity, "name"), complement=replace(what, relative=relative), tense=stage.tense)
    subject = _first(stage, who, stage.dice.pick(["named", "appositive"]))
    return facts.state_one(stage, who, facts.RELATIVES, subject)


def _first(stage: Stage, who: Character, form: Form) -> Mention:
    for fact in ("noun", "trait"):
        stage.tell(who.entity, fact)
    introduced = stage.introduced(who.entity)
    return replace(introduced, form=form) if who.entity.name else introduced


def fact(stage: Stage, who: Character) -> Utterance:
    clause = facts.state_one(stage, who)
    return replace(clause, frequency="still") if stage.recalls and stage.dice.chance(0.3) else clause


def contrast(stage: Stage, who: Character) -> Utterance:
    """The same fact of two characters: "Anna lived by the mill, but Tom lived in the village"."""
    other = stage.someone_else(who)
    shared = facts.known_of(stage, other) if other else []
    name = facts.choose(stage, who)
    if name not in shared or (name == "home" and who.home is other.home):
        return facts.state(stage, who, name)
    first = facts.state(stage, who, name)
    return Coordination(first, stage.dice.pick(["but", "and"]), facts.state(stage, other, name))


def homecoming(stage: Stage, who: Character) -> Utterance:
    return _timed(stage, events.go_home(stage, who))


def keeping(stage: Stage, who: Character) -> Utterance:
    return _timed(stage, events.viewed(stage, events.keep(stage, who)))


def finding(stage: Stage, who: Character) -> Utterance:
    """Where a treasure is, or that somebody finds it whose it is not."""
    finder = stage.someone_else(who)
    if finder is None or stage.dice.chance(0.5):
        noun = stage.dice.skewed(list(lexicon.FURNITURE))
        item = stage.treasure(who)
        place = Mention(Entity(noun, plural=noun in lexicon.PLURAL_ONLY), "definite")
        setting = Setting(lexicon.FURNITURE[noun], place)
        return Clause(stage.dice.pick(lexicon.POSTURES), item, setting=setting, tense=stage.tense)
    subject, item = stage.mention(finder.entity), stage.described(who.treasure)
    loser = stage.mention(who.entity)
    stage.tell(who.entity, "treasure")
    lost = Mention(who.treasure, "relative")
    loss = Clause(stage.dice.pick(lexicon.LOSING), loser, lost, tense=stage.tense, aspect="perfect")
    return Clause("find", subject, replace(item, relative=loss), tense=stage.tense)


def search(stage: Stage, who: Character) -> Utterance:
    """In vain, but something may come of it. "It" would be the seeker where that is an unnamed animal."""
    if who.entity.gender == "neuter" and not who.entity.plural:
        return keeping(stage, who)
    first = Clause("look for", stage.mention(who.entity), stage.treasure(who), tense=stage.tense)
    first = _timed(stage, first)
    subject, item = stage.mention(who.entity), stage.mention(who.treasure)
    if stage.recalls and stage.dice.chance(0.6):
        stage.sequel = lambda stage: finding(stage, who)
    return Coordination(first, "but", Clause("find", subject, item, tense=stage.tense, modal="can", negative=True))


def distinction(stage: Stage, who: Character) -> Utterance:
    """A description by a fact, as the subject of an event: "the baker who lived by the mill"."""
    described = stage.described(who.entity)
    relative = facts.state_one(stage, who, facts.RELATIVES, Mention(who.entity, "relative"))
    return _happens(stage, who, replace(described, relative=relative))


def concession(stage: Stage, who: Character) -> Utterance:
    """Something done at that age."""
    if not who.age:
        return happening(stage, who)
    although = facts.state(stage, who, "age")
    return Subordination(_happens(stage, who), "although", although, fronted=True)


def report(stage: Stage, who: Character) -> Utterance:
    """What one knows or says of another."""
    other = stage.someone_else(who) or who
    verb, subject = stage.dice.skewed(lexicon.BELIEF), stage.mention(who.entity)
    is_fact = stage.is_due or stage.dice.chance(0.6)
    content = facts.state_one(stage, other) if is_fact else _happens(stage, other)
    return Clause(verb, subject, content=content, tense=stage.tense)


def affection(stage: Stage, who: Character) -> Utterance:
    """Whom one likes is a reason for a gift, for which thanks may follow."""
    liked = stage.cast.likes[who]
    if liked not in stage.present or not who.trade.gifts or who.entity.gender == liked.entity.gender:
        return happening(stage, who)  # two of one gender need too many names for it
    reason = facts.state(stage, who, "liking")
    subject, recipient = stage.mention(who.entity), stage.mention(liked.entity)
    gift = stage.passing(stage.dice.skewed(who.trade.gifts))
    deed = Clause(stage.dice.skewed(lexicon.GIVING), subject, gift, recipient, tense=stage.tense)
    if stage.recalls and stage.dice.chance(0.5):
        stage.sequel = lambda stage: thanks(stage, liked, who)
    return Subordination(deed, "because", reason, fronted=True)


def thanks(stage: Stage, who: Character, giver: Character) -> Utterance:
    subject, object_ = stage.mention(who.entity), stage.mention(giver.entity)
    return Clause(stage.dice.pick(lexicon.THANKING), subject, object_, tense=stage.tense)


def happening(stage: Stage, who: Character) -> Utterance:
    return _timed(stage, _happens(stage, who))


def mood(stage: Stage, who: Character) -> Utterance:
    """A passing state and what it leads to."""
    is_fronted = stage.dice.chance(0.6)
    first, second = events.mood_and_deed(stage, who, deed_first=not is_fronted)
    main, reason = (second, first) if is_fronted else (first, second)
    return Subordination(main, "because", reason, is_fronted)


def moment(stage: Stage, who: Character) -> Utterance:
    """Something happens when somebody arrives, or in the middle of the weather."""
    other = stage.someone_else(who) or who
    arrival = events.go_home if stage.dice.chance(0.5) else events.travel
    background = events.scenery(stage) if stage.dice.chance(0.3) else arrival(stage, who)
    return Subordination(events.event(stage, other), "when", background, fronted=True)


def meanwhile(stage: Stage, who: Character) -> Utterance:
    other = stage.someone_else(who) or who
    background = replace(events.work(stage, who), aspect="progressive")
    return Subordination(events.event(stage, other), "while", background, fronted=True)


def sequence(stage: Stage, who: Character) -> Utterance:
    """Two events, or an event in its weather."""
    if stage.dice.chance(0.25):
        return Coordination(events.scenery(stage), "and", _happens(stage, who))
    first = _timed(stage, _happens(stage, who))
    return Coordination(first, "and", _happens(stage, stage.someone_else(who) or who))


def together(stage: Stage, who: Character) -> Utterance:
    """Two characters as one subject, and as "they" in the sentence after."""
    other = stage.someone_else(who)
    members = stage.fresh_pair() or (other and (who, other))
    if members is None or any(member.entity.plural for member in members):
        return happening(stage, who)
    subject = stage.pair(*members)
    if stage.dice.chance(0.5):
        goal = stage.dice.pick(stage.cast.resorts)
        for member in members:
            stage.whereabouts[member] = goal
        return Clause(stage.dice.skewed(lexicon.TRAVEL), subject, setting=stage.to(goal), tense=stage.tense)
    setting = events.here(stage, members[0])
    verb = stage.dice.skewed(lexicon.TOGETHER)
    return _timed(stage, events.viewed(stage, Clause(verb, subject, setting=setting, tense=stage.tense)))
