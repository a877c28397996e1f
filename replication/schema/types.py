"""Types of values, and sections that several tasks share."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, WrapValidator

from replication.schema.sections import Problem, Section, checked, problem

T = TypeVar("T")
#: Tags of unions without a key that tells their members apart. Pydantic adds them to the paths of errors.
TAGS = ONE, LIST, PRETRAINED, NEW, LISTED, OWN = "<one>", "<list>", "<pretrained>", "<new>", "<listed>", "<own>"


#: Bytes of a name in a path, and letters of a name that becomes part of one.
LONGEST_NAME, LETTERS = 255, 60
#: Numbers such as 1e-3, which PyYAML reads as text because they lack a point before the exponent.
_WITH_EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")


def _not_null(value: object) -> object:
    if value is None:
        raise problem("must have a value, got nothing; leave the key out for its default")
    return value


def _whole(value: object) -> object:
    # As JSON schemas do, count 1000.0 as a whole number.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _as_written(value: object, handler) -> object:
    if isinstance(value, str) and _WITH_EXPONENT.fullmatch(value):
        value = float(value)
    # A float field would turn 1 into 1.0, and settings are compared with those of earlier runs.
    handler(value)
    return value


def _once(values: list) -> Iterator[Problem]:
    if twice := [value for number, value in enumerate(values) if value in values[:number]]:
        yield (), f"must have each value once, got {twice[0]} twice"


def _short(text: str) -> str:
    if len(text) > LETTERS:
        raise problem(f"must have at most {LETTERS} letters, got {len(text)}")
    if not text.isprintable():
        raise problem(f"must be text on one line, got {text!r}")
    return text


def whole(ge: int, le: int | None = None) -> type[int]:
    """Return the type of whole numbers in a range."""
    return Annotated[int, Field(ge=ge, le=le), BeforeValidator(_whole)]


def number(**bounds: float) -> type[float]:
    """Return the type of finite numbers within pydantic's bounds ``gt``, ``ge``, ``lt`` and ``le``."""
    return Annotated[float, Field(allow_inf_nan=False, **bounds), WrapValidator(_as_written)]


Count = whole(1)
CountOrZero = whole(0)
#: The seeds that numpy and scikit-learn accept.
Seed = whole(0, 2**32 - 1)
AboveZero = number(gt=0)
NotNegative = number(ge=0)
Dropout = number(ge=0, lt=1)
#: A share that is neither nothing nor all.
Share = number(gt=0, lt=1)
ShareOrAll = number(gt=0, le=1)
#: A short text, which may become part of a file's name.
Text = Annotated[str, Field(min_length=1), AfterValidator(_short)]

#: An optional value. YAML's null is refused, since it hides a forgotten value.
Maybe = Annotated[T | None, BeforeValidator(_not_null)]
NonEmpty = Annotated[list[T], Field(min_length=1)]
Unique = Annotated[list[T], Field(min_length=1, json_schema_extra={"uniqueItems": True}), checked(_once)]
#: One value, or a list with a member of the grid for each value.
OneOrMore = Annotated[
    Annotated[T, Tag(ONE)] | Annotated[NonEmpty[T], Tag(LIST)],
    Discriminator(lambda value: LIST if isinstance(value, list) else ONE),
]


def values_of(value: OneOrMore[T] | None) -> list[T]:
    """Return a list of a key's values: none, one or several."""
    return value if isinstance(value, list) else [] if value is None else [value]


def expanded(path: str) -> str:
    """Return a path; raise an error if only a shell would expand it, Snakemake would take a part of it for a wildcard, or no
    file can have it.
    """
    if "\0" in path or any(len(part.encode()) > LONGEST_NAME for part in path.split("/")):
        raise problem(f"must be a path of names of at most {LONGEST_NAME} bytes, got {path!r:.80}")
    if "{" in path or "}" in path:
        raise problem(
            f"must be a path without braces, which Snakemake takes for wildcards, got {path!r}; rename the folder"
        )
    if path.startswith("~"):
        raise problem(
            f"must be a path without ~, which only shells expand, got {path!r}; write {Path(path).expanduser()}"
        )
    return path


#: A path of a file or folder, or a name on the hub.
Location = Annotated[str, Field(min_length=1), AfterValidator(expanded)]


def matching(pattern: str, like: str) -> type[str]:
    """Return the type of short texts that match a pattern. Errors say what they are like."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise problem(f"must be {like}, got {text!r:.80}")
        return _short(text)

    return Annotated[str, Field(json_schema_extra={"pattern": f"^({pattern})$"}), AfterValidator(check)]


def _name(name: str) -> str:
    if not name.translate(dict.fromkeys(map(ord, "-_."))).isalnum() or name.startswith("."):
        raise problem(f"must be a name of letters, digits, '-', '_' and '.', got {name!r:.80}")
    return _short(name)


#: A name that becomes part of file names and a column of tables.
Name = Annotated[str, AfterValidator(_name)]
ShortName = matching("[a-z0-9-]+", "a name of lower-case letters, digits and '-'")

MatmulPrecision = Literal["highest", "high", "medium"]
PRECISION = Field(
    "highest", description="PyTorch's precision of float32 products. `medium` is fast on CPUs with bfloat16."
)


class TwoSplits(Section):
    """Sizes of the training and validation splits."""

    train: Count = Field(description="Size of the training split.")
    valid: Count = Field(description="Size of the validation split.")


class ThreeSplits(TwoSplits):
    """Sizes of the training, validation and test splits."""

    test: Count = Field(description="Size of the test split.")


def divides(section: Section, heads: str, width: str) -> Iterator[Problem]:
    """Yield a problem if the number of heads does not divide the width."""
    count, size = getattr(section, heads), getattr(section, width)
    if size % count:
        yield (heads,), f"must divide {width} {size}, got {count}"
