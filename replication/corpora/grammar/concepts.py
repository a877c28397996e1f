"""What links the words of a sentence to its abstract syntax, so that two languages can be aligned word by word.

A concept is a node of the abstract syntax in one of its roles: the verb of a clause, the adjective of a mention. It is
numbered by the utterance alone, so that its number is the same in every language.
"""

from typing import NamedTuple

from replication.corpora.documents import Sentence
from replication.corpora.grammar.clauses import (
    Age,
    Clause,
    Coordination,
    Mention,
    Pair,
    Quotation,
    Setting,
    Subordination,
    Utterance,
)

#: Roles of a mention (an age has a numeral, a head and an adjective too).
HEAD, DETERMINER, NUMERAL, ADJECTIVE, NAME, NAMED, CASE = range(7)
#: Roles of a clause. ``PREPOSITION`` is also that of a setting, ``CONJUNCTION`` that of whatever joins two things, and
#: ``VERB`` that of a quotation.
VERB, HELPER, NEGATION, FREQUENCY, MANNER, TIME, QUESTION, COMPLEMENT, REFLEXIVE, PREPOSITION, CONJUNCTION = range(11)
#: More than there are roles of any node.
_ROLES = 16

_CHILDREN = {
    Clause: ("subject", "object", "recipient", "complement", "content", "setting"),
    Mention: ("owner", "relative"),
    Pair: ("first", "second"),
    Setting: ("place",),
    Subordination: ("main", "subordinate"),
    Coordination: ("first", "second"),
    Quotation: ("words", "speaker", "addressee", "vocative"),
    Age: (),
}


class Word(NamedTuple):
    """A word with its tag and chain, and the node of the abstract syntax that it expresses, if any, in which role."""

    text: str
    tag: str
    chain: int = -1
    node: object = None
    role: int = HEAD


def phrase(words: list[tuple[str, str]], node: object, role: int) -> list[Word]:
    """A fixed expression of (word, tag). Its prepositions and articles have no concept of their own."""
    return [Word(word, tag) if tag in ("ADP", "DET") else Word(word, tag, -1, node, role) for word, tag in words]


def number_nodes(utterance: Utterance) -> dict[int, int]:
    """The number of every node of an utterance, by the node's ``id``: valid for as long as the utterance lives."""
    numbers: dict[int, int] = {}
    waiting: list[object] = [utterance]
    while waiting:
        node = waiting.pop()
        numbers[id(node)] = len(numbers)
        for field in _CHILDREN[type(node)]:
            child = getattr(node, field)
            if child is not None and not isinstance(child, str):
                waiting.append(child)
    return numbers


def tidy(words: list[Word]) -> list[Word]:
    """Leaves out the comma that would close a subordinate clause where another mark follows."""
    marks = [word.tag == "PUNCT" for word in words]
    return [
        word
        for word, is_followed in zip(words, [*marks[1:], False], strict=True)
        if not (word.text == "," and is_followed)
    ]


def sentence(words: list[Word], numbers: dict[int, int] | None) -> Sentence:
    """Capitalises the first word; with the numbers of the nodes, every word also has its concept or -1."""
    first = 1 if words[0].tag == "PUNCT" else 0
    texts, tags, chains, nodes, roles = map(list, zip(*words, strict=True))
    texts[first] = texts[first][0].upper() + texts[first][1:]
    if numbers is None:
        return Sentence(texts, tags, chains)
    found = zip(nodes, roles, strict=True)
    concepts = [-1 if node is None else numbers[id(node)] * _ROLES + role for node, role in found]
    return Sentence(texts, tags, chains, concepts)
