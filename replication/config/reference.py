"""The reference of all keys, `config/README.md`, and the JSON schema for editors, `config/schema.json`."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic.json_schema import GenerateJsonSchema

from replication.config.profile import Config

FOLDER = Path(__file__).parents[2] / "config"
INTRODUCTION = """\
<!-- Written by `python -m replication.config`. -->
# Configuration

One YAML file is one *profile*. `snakemake` runs `demo.yaml`, and `snakemake --configfile config/local.yaml` runs another one.
`--config` overrides single keys.

| profile | purpose |
|---|---|
| `demo.yaml` | text from packages and small models, in minutes on two cores; the default |
| `local.yaml` | text from your own folders, models for a CPU or one GPU |
| `minilm.yaml` | a pretrained encoder, made sparse |
| `paper.yaml` | models, data and grids of the papers; needs a GPU |
| `paper-week.yaml` | a cut of `paper.yaml` for one A100 and a week; its header says what it decides |
| `paper-news.yaml` | News-Commentary, whose languages `paper.yaml` has already from another corpus; needs a GPU |
| `paper-captions.yaml` | image captioning on COCO; needs a GPU |
| `smoke.yaml` | everything, tiny, for CI |

`encoders/` has profiles of [stored runs](../reported/README.md), and `further/` also some that have not been run to their end.

Invalid settings stop the run before any job starts. All problems are listed, each with the full path of its key:

```
masked_lm.tag_clustrs: unknown key; did you mean tag_clusters?
masked_lm.length: must be at least 8, got 1
```

Editors with a YAML language server check and complete keys as you type: the first line of each profile names `schema.json`.

To ship models: `snakemake ship` trains missing models and makes a checkpoint of each model of the profile, in `checkpoints/`
or the folder of the key `checkpoints`. `make retrain` trains the default profile's models again, into `results/retrained`, and
lists which have the weights in `checkpoints/weights.csv` (`replicate compare-weights`). For a single model:
`replicate ship --help`.

A profile can leave out any section but needs at least one. In the paths below, `[]` stands for an item of a list, and `*` for
a name that you choose.

"""
#: Mappings with more keys have a table of their own if several sections use them.
INLINE = 3
#: Types and bounds in words, by the names of JSON schemas.
WORDS = {"boolean": "true or false", "integer": "whole number", "number": "number", "string": "text"}
BOUNDS = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}


class _Schema(GenerateJsonSchema):
    """A JSON schema without pydantic's titles and nulls, and with the names that keys can have."""

    def nullable_schema(self, schema):
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema):
        absent = schema.get("default", ...) is None
        return self.generate_inner(schema["schema"]) if absent else super().default_schema(schema)

    def dict_schema(self, schema):
        found = super().dict_schema(schema)
        return found | ({"additionalProperties": False} if "patternProperties" in found else {})

    def field_title_should_be_set(self, schema):
        return False


def json_schema() -> dict[str, object]:
    """Return the JSON schema of a profile."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return draft | Config.model_json_schema(schema_generator=_Schema)


def readme() -> str:
    """Return the text of `config/README.md`."""
    return INTRODUCTION + _Reference(json_schema()).text()


def write() -> None:
    """Write both files, each at once."""
    for name, text in (("README.md", readme()), ("schema.json", json.dumps(json_schema(), indent=1) + "\n")):
        partial = FOLDER / f".{name}.partial"
        partial.write_text(text, encoding="utf-8")
        partial.replace(FOLDER / name)


class _Reference:
    """Tables of keys, from a JSON schema."""

    def __init__(self, schema: dict):
        self.schema, self.definitions = schema, schema["$defs"]
        #: Definitions with a table of their own, and its heading.
        self.headings = {_name(value): key for key, value in schema["properties"].items() if "$ref" in value}
        unions = [member for value in self.definitions.values() for member in value.get("oneOf", ())]
        uses = Counter(re.findall(r'"\$ref": "#/\$defs/(\w+)"', json.dumps(schema)))
        for name in sorted(self.definitions.keys() - self.headings.keys() - set(map(_name, unions))):
            if uses[name] > 1 and len(self.definitions[name].get("properties", "union")) > INLINE:
                self.headings[name] = re.sub("(?<=[a-z])[A-Z](?=[a-z])", lambda letter: f" {letter[0].lower()}", name)

    def text(self) -> str:
        """Return all tables: the profile, its sections, and definitions that several sections share."""
        tables = [self._table("profile", self.schema, "")]
        for name, heading in self.headings.items():
            prefix = f"{heading}." if heading in self.schema["properties"] else ""
            tables.append(self._table(heading, self.definitions[name], prefix))
        return "\n".join(tables)

    def _table(self, heading: str, schema: dict, prefix: str) -> str:
        rows = [("key", "type", "default", "meaning"), ("---",) * 4, *self._rows(schema, prefix)]
        lines = ("| " + " | ".join(" ".join(cell.split()) for cell in row) + " |" for row in rows)
        return f"## {heading}\n\n{schema['description']}\n\n" + "\n".join(lines) + "\n"

    def _rows(self, schema: dict, prefix: str) -> Iterator[tuple[str, str, str, str]]:
        """Yield a row for each key of a mapping, or of the members of a union of mappings, with the keys inside."""
        for member in schema.get("oneOf", ()):
            if "$ref" in member:
                yield from self._rows(self._resolved(member), prefix)
        # A key that chooses the kind of mapping comes before the keys of this kind.
        for key, value in sorted(schema.get("properties", {}).items(), key=lambda item: "const" not in item[1]):
            default = f"`{json.dumps(value['default'])}`" if "default" in value else "optional"
            meaning = value.get("description") or self._resolved(value).get("description") or schema["description"]
            if _name(value) in self.headings:
                meaning = meaning.partition("\n\n")[0]
            yield (
                f"`{prefix}{key}`",
                self._type(value),
                "required" if key in schema.get("required", ()) else default,
                meaning,
            )
            yield from self._inside(value, f"{prefix}{key}")

    def _inside(self, schema: dict, path: str) -> Iterator[tuple[str, str, str, str]]:
        if "items" in schema:
            yield from self._inside(schema["items"], f"{path}[]")
        elif values := _values(schema):
            yield from self._inside(values, f"{path}.*")
        elif _name(schema) not in self.headings:
            yield from self._rows(self._resolved(schema), f"{path}.")

    def _resolved(self, schema: dict) -> dict:
        return self.definitions.get(_name(schema), schema)

    def _type(self, schema: dict) -> str:
        """Return the type of a value in words."""
        if "$ref" in schema:
            heading = self.headings.get(_name(schema))
            return f"[{heading}](#{heading.lower().replace(' ', '-')})" if heading else "keys below"
        if choices := schema.get("enum", [schema["const"]] if "const" in schema else []):
            return ", ".join(f"`{choice if isinstance(choice, str) else json.dumps(choice)}`" for choice in choices)
        if members := schema.get("anyOf") or schema.get("oneOf"):
            return " or ".join(
                dict.fromkeys("a list" if "items" in member else self._type(member) for member in members)
            )
        if schema["type"] == "array":
            return f"list: {self._type(schema['items'])}"
        if schema["type"] == "object":
            return f"by name: {self._type(_values(schema))}"
        bounds = [f"{words} {schema[key]}" for key, words in BOUNDS.items() if key in schema]
        return " ".join([WORDS[schema["type"]], *bounds])


def _name(schema: dict) -> str:
    return schema.get("$ref", "").rpartition("/")[2]


def _values(schema: dict) -> dict:
    """Return the schema of the values of a mapping whose keys are names, or nothing."""
    values = next(iter(schema.get("patternProperties", {}).values()), schema.get("additionalProperties"))
    return values if isinstance(values, dict) else {}
