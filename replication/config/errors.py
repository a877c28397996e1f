"""Problems of a configuration as sentences that begin with the full path of a key."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from pydantic import ValidationError

from replication.schema import MISSING, Reading, Section, shown
from replication.schema.types import TAGS

A_MAPPING = "must be a mapping of keys to values"
#: What a value must be, by pydantic's type of error; in braces its context.
MUST = {
    "bool_type": "must be true or false",
    "dict_type": A_MAPPING,
    "finite_number": "must be a finite number",
    "float_type": "must be a number",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "int_type": "must be a whole number",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "list_type": "must be a list",
    "literal_error": "must be {expected}",
    "model_attributes_type": A_MAPPING,
    "model_type": A_MAPPING,
    "string_too_short": "must not be empty",
    "string_type": "must be text",
    "too_long": "must have at most {max_length} entry",
    "too_short": "must have at least {min_length} entry",
    "union_tag_invalid": "must be one of {expected_tags}",
}
#: Keys whose value chooses the class of a mapping; pydantic adds the value to the paths of errors.
KINDS = ("source", "predictor", "architecture")
#: Parts that pydantic adds to the paths of errors: tags, and the mark of a key that is refused itself.
ADDED = (*TAGS, "[key]")


class ConfigurationError(ValueError):
    """A configuration that cannot work; ``problems`` has a line for each reason."""

    def __init__(self, problems: list[str]):
        super().__init__("\n".join(problems))
        self.problems = problems


def sentences(error: ValidationError, settings: object, reading: Reading) -> list[str]:
    """Return a line for each problem: the path of its key, and what the value must be.

    Parameters
    ----------
    settings : object
        The values that were validated.
    reading : Reading
        The context of their validation.
    """
    found = [_Problem(details, settings, reading.classes) for details in error.errors(include_url=False)]
    # A misspelt key is missing, too: one problem, not two.
    corrected = {(one.path[:-1], one.suggestion) for one in found if one.suggestion}
    return [str(one) for one in found if not (one.missing and (one.path[:-1], one.path[-1]) in corrected)]


class _Problem:
    """One of pydantic's errors, with the user's keys as its path."""

    def __init__(self, details: dict, settings: object, classes: Mapping[int, type[Section]]):
        self.kind, self.value, self.context = details["type"], details["input"], details.get("ctx", {})
        self.path, parent, self.suggestion = tuple(_keys(details["loc"], settings)), settings, None
        for part in self.path[:-1]:
            parent = parent[part]
        if self.kind.startswith("union_tag"):
            key = self.context["discriminator"].strip("'")
            misspelt = _near(key, self.value) if self.kind == "union_tag_not_found" else None
            self.path, self.value = (*self.path, misspelt or key), self.value.get(key)
            self.kind, self.suggestion = ("extra_forbidden", key) if misspelt else (self.kind, None)
        elif self.kind == "extra_forbidden":
            fields = classes[id(parent)].model_fields
            self.suggestion = _near(self.path[-1], [field.alias or name for name, field in fields.items()])

    @property
    def missing(self) -> bool:
        return self.kind in ("missing", "union_tag_not_found")

    def __str__(self) -> str:
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path).removeprefix(".")
        return f"{path or 'configuration'}: {self._sentence()}"

    def _sentence(self) -> str:
        if self.kind in ("extra_forbidden", "invalid_key"):
            return "unknown key" + (f"; did you mean {self.suggestion}?" if self.suggestion else "")
        if self.missing:
            return MISSING
        if self.kind == "problem":
            return self.context["sentence"]
        context = {key: _rounded(value) for key, value in self.context.items()}
        advice = "; write it in quotes" if self.kind == "string_type" and not _is_collection(self.value) else ""
        return f"{MUST.get(self.kind, 'must be another value').format(**context)}, got {shown(self.value)}{advice}"


def _is_collection(value: object) -> bool:
    return value is None or isinstance(value, dict | list)


def _near(key: str, keys: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(key, list(map(str, keys)), n=1)), None)


def _keys(location: tuple[str | int, ...], value: object) -> Iterator[str | int]:
    """Yield the user's keys and indices among the parts of pydantic's path."""
    for part in location:
        if isinstance(value, list) and isinstance(part, int):
            yield part
            value = value[part]
        elif isinstance(value, dict) and part not in (*ADDED, *(value.get(key) for key in KINDS)):
            yield part
            value = value.get(part)


def _rounded(bound: object) -> object:
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound
