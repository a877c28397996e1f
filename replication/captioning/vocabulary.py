"""The words of captions, as numbers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

PAD, BEGIN, END, UNKNOWN = range(4)
_MARKS = ("<pad>", "<s>", "</s>", "<unk>")


@dataclass(frozen=True)
class Vocabulary:
    """Four marks, then words; :meth:`of` makes one of captions."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, captions: Iterable[Sequence[str]], least: int) -> "Vocabulary":
        """Words that occur at least so often, the most frequent first. Raises ``ValueError`` if there is none.

        >>> Vocabulary.of([["a", "red", "ball"], ["a", "ball"]], least=2).words
        ('a', 'ball')
        """
        counts = Counter(word for caption in captions for word in caption)
        words = sorted(
            (word for word, count in counts.items() if count >= least), key=lambda word: (-counts[word], word)
        )
        if not words:
            raise ValueError(f"the vocabulary is empty: no word of the captions occurs {least} times")
        return cls(tuple(words))

    def __len__(self) -> int:
        return len(_MARKS) + len(self.words)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words, start=len(_MARKS))}

    def encode(self, caption: Sequence[str], longest: int) -> list[int]:
        """Numbers of at most so many words, and of the end."""
        return [self._numbers.get(word, UNKNOWN) for word in caption[:longest]] + [END]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Words up to the end; marks have none.

        >>> vocabulary = Vocabulary(("a", "ball"))
        >>> vocabulary.decode([BEGIN, 4, 5, END, 4])
        ['a', 'ball']
        """
        words = []
        for number in numbers:
            if number == END:
                break
            if number >= len(_MARKS):
                words.append(self.words[number - len(_MARKS)])
        return words
