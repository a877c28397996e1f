"""What holds of every language that the embedded corpus is translated to."""

from itertools import islice

import pytest
from scenes import ANNA, at, it

from replication.corpora.grammar import story
from replication.corpora.grammar.clauses import Clause, Coordination, Entity, Mention
from replication.corpora.grammar.french import sentences as french
from replication.corpora.grammar.german import sentences as german
from replication.corpora.grammar.glossary import UnknownWord
from replication.dice import Dice

both = pytest.mark.parametrize(("name", "language"), [("German", german), ("French", french)])


@both
@pytest.mark.parametrize(
    ("clause", "message"),
    [
        (Clause("teleport", it(ANNA)), "no verb for 'teleport'"),
        (Clause("see", it(ANNA), Mention(Entity("unicorn"), "definite")), "no noun for 'unicorn'"),
        (Clause("be", it(ANNA), complement="ultraviolet"), "no adjective for 'ultraviolet'"),
        (Clause("sing", it(ANNA), manner="wryly"), "no adverb for 'wryly'"),
        (Clause("sing", it(ANNA), time="at dawn"), "no time expression for 'at dawn'"),
        (Clause("sing", it(ANNA), setting=at("inside", "village")), r"no preposition of place for \('inside'"),
        (Coordination(Clause("sing", it(ANNA)), "or", Clause("sing", it(ANNA))), "no conjunction for 'or'"),
    ],
)
def test_an_unknown_word_is_named(name, language, clause, message):
    with pytest.raises(UnknownWord, match=f"{name}: {message}"):
        language.sentence(clause)


@both
def test_the_same_words_for_the_same_abstract_sentence(name, language):
    """The translation depends on nothing but the utterance: no state, no order."""
    dice = Dice(2)
    several = list(islice((utterance for _ in range(10) for utterance in story.tell(dice)), 60))
    assert len(several) == 60
    forward = [language.sentence(one) for one in several]
    assert [language.sentence(one) for one in reversed(several)] == forward[::-1]
