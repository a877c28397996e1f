"""The base class of all sections, and the way that checks report problems."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    PrivateAttr,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

#: A key's path below the value that is checked, and a sentence about the key's value.
Problem = tuple[tuple[str | int, ...], str]
T = TypeVar("T")

MISSING = "missing key"


@dataclass
class Reading:
    """One reading of a profile, the context of its validators.

    Attributes
    ----------
    files : bool
        Whether files that the profile names must exist.
    classes : dict
        The class that reads each mapping, by the mapping's ``id``. Errors need its keys to correct a misspelt one.
    """

    files: bool
    classes: dict[int, "type[Section]"] = field(default_factory=dict)


def problem(sentence: str) -> PydanticCustomError:
    """Return the error of a validator as the sentence that the user reads."""
    return PydanticCustomError("problem", "{sentence}", {"sentence": sentence})


def shown(value: object) -> str:
    """Return a value as it stands in YAML, but for strings, which have quotes."""
    if isinstance(value, dict | list):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    words = {None: "nothing", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return words[value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else f"{value!r:.80}"


def refuse(problems: Iterable[Problem], value: object) -> None:
    """Raise ``ValidationError`` with all problems, if there are any."""
    if found := [InitErrorDetails(type=problem(what), loc=path, input=value) for path, what in problems]:
        raise ValidationError.from_exception_data("problem", found)


def checked(problems: Callable[[T], Iterable[Problem]], files: bool = False) -> AfterValidator:
    """Return a validator that refuses a value with problems; if these are about files, only where files must exist."""

    def check(value: T, info) -> T:
        if not files or (info.context and info.context.files):
            refuse(problems(value), value)
        return value

    return AfterValidator(check)


class UndeclaredSetting(RuntimeError):
    """A stage used a setting that its step does not declare, so that another value would not run the step again."""


class Section(BaseModel):
    """A mapping of a profile: its keys, their types and the checks between them."""

    # Pydantic builds the validator of the whole profile when it first reads one, and none for each section.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)
    _order: tuple[str, ...] = PrivateAttr(())

    def problems(self) -> Iterator[Problem]:
        """Yield the values that cannot work together, each with the path of its key below this section."""
        yield from ()

    def limited(self, paths: Iterable[str]) -> Self:
        """Return a copy with only the settings at these paths, such as ``masked_lm/projection``; using another is an error."""
        below = defaultdict(set)
        for path in paths:
            key, _, rest = path.partition("/")
            below[key].add(rest)
        copy = self.model_copy()
        for name, of_key in type(self).model_fields.items():
            rest = below.get(of_key.alias or name)
            if rest is None:
                copy.__dict__.pop(name)
                copy.model_fields_set.discard(name)
            elif "" not in rest:
                copy.__dict__[name] = _limited(copy.__dict__[name], rest)
        return copy

    def __getattr__(self, name: str):
        if name in type(self).model_fields:
            raise UndeclaredSetting(f"{name}: this step does not declare that it sees this setting")
        return super().__getattr__(name)

    def given(self) -> dict[str, object]:
        """Return the keys that the user wrote, in their order, as plain dicts, lists and scalars."""
        return self.model_dump(exclude_unset=True, by_alias=True)

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, values, handler, info):
        if info.context:
            info.context.classes[id(values)] = cls
        section = handler(values)
        if isinstance(values, dict):
            section._order = tuple(values)
        refuse(section.problems(), values)
        return section

    @model_serializer(mode="wrap")
    def _in_order(self, handler):
        values = handler(self)
        return {key: values[key] for key in (*self._order, *values) if key in values}


def _limited(value: Section | dict[str, Section] | None, paths: set[str]) -> Section | dict[str, Section] | None:
    """Return a section with the settings at these paths, or the named sections with theirs."""
    if not isinstance(value, dict):
        return value and value.limited(paths)
    names = {path.partition("/")[0] for path in paths}
    rest = {name: {path.partition("/")[2] for path in paths if path.partition("/")[0] == name} for name in names}
    return {
        name: section if "" in rest[name] else section.limited(rest[name])
        for name, section in value.items()
        if name in names
    }
