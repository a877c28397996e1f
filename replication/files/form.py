"""Form of a manifest: the parts and their types, which a right checksum says nothing about."""

from collections.abc import Callable, Mapping
from pathlib import Path

from replication.files.errors import FormatError
from replication.files.names import place_within

#: Values of each file that a stage made, and of each file that the workflow plans.
MADE = {"sha256": str, "stage": str, "configuration": str | None, "options": str, "code": str, "inputs": dict}
PLANNED = {"options": str, "code": str}
#: The parts of a manifest; stored runs and runs of earlier versions lack the second ones.
NEEDED, LATER = {"profile": str, "plan": dict, "made": dict}, {"dropped": dict, "machines": dict, "whole": bool}


def check_form(path: Path, manifest: object) -> None:
    """Check that a manifest has the parts that its readers use, and names files within its run alone.

    Raises
    ------
    FormatError
        If it has not; the error names the part.
    """
    refuse = _refusing(path)
    if not isinstance(manifest, dict):
        raise refuse("", "an object", manifest)
    _check(refuse, "", manifest, NEEDED, LATER)
    for part, form in (("made", MADE), ("plan", PLANNED), ("dropped", MADE)):
        for place, entry in manifest.get(part, {}).items():
            place_within(path, place)
            if not isinstance(entry, dict):
                raise refuse(f"{part}.{place}", "an object", entry)
            _check(refuse, f"{part}.{place}.", entry, form, {"machine": str, "source": str})
            if not entry.get("stage", "a stage").strip():
                raise refuse(f"{part}.{place}.stage", "a command", entry["stage"])
            _check(
                refuse,
                f"{part}.{place}.inputs.",
                entry.get("inputs", {}),
                {},
                dict.fromkeys(entry.get("inputs", {}), str),
            )
            if entry.get("machine") not in (None, *manifest.get("machines", {})):
                raise refuse(f"{part}.{place}.machine", "one of machines", entry["machine"])
    for name, machine in manifest.get("machines", {}).items():
        if not isinstance(machine, dict):
            raise refuse(f"machines.{name}", "an object", machine)
        _check(refuse, f"machines.{name}.", machine, {"source": str, "hardware": str}, dict.fromkeys(machine, str))


def _check(
    refuse: Callable, where: str, value: Mapping, needed: Mapping[str, type], others: Mapping[str, type]
) -> None:
    for name, kind in (needed | others).items():
        if (name in needed or name in value) and not isinstance(value.get(name), kind):
            raise refuse(f"{where}{name}", f"of type {getattr(kind, '__name__', kind)}", value.get(name))


def _refusing(path: Path) -> Callable[[str, str, object], FormatError]:
    return lambda where, expected, value: FormatError(
        f"{path}: {where or 'it'} must be {expected}, got {value!r:.60}; restore it from a copy, or move {path.parent} away"
        " and run again"
    )
