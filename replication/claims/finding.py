"""What the test of a claim finds, and how tests are listed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finding:
    """What a test found: ``holds``, one number per seed that decides it, and the numbers in words.

    ``holds`` is ``None`` where the claim is a printed number: then the ledger compares, and only at the paper's scale.
    """

    holds: bool | None
    per_seed: list[float]
    numbers: str


#: From the folder of a task's results; None where the claim cannot be tested on them.
Test = Callable[[Path], Finding | None]


def registering(tests: dict[str, Test]) -> Callable[[str], Callable[[Test], Test]]:
    """A decorator that enters a test under the id of its claim."""

    def claim(name: str) -> Callable[[Test], Test]:
        def register(test: Test) -> Test:
            tests[name] = test
            return test

        return register

    return claim
