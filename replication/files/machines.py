"""Machines of a run: the versions and processors that made its files, from its manifest."""

from collections.abc import Iterable, Mapping

from replication.files.runs import is_drawn


def machines(manifest: Mapping[str, dict]) -> list[dict[str, str]]:
    """Return versions and processors that made a run's files, without its pictures and pages, which are drawn anywhere."""
    entries = (entry for place, entry in manifest["made"].items() if not is_drawn(place) and entry["stage"] != "report")
    return [manifest["machines"][name] for name in dict.fromkeys(entry.get("machine") for entry in entries) if name]


def joined(origins: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return each value of :func:`machines`, or all of them where there are several."""
    values: dict[str, dict[str, None]] = {"source": {}, "hardware": {}}
    for origin in origins:
        for name, value in origin.items():
            values.setdefault(name, {})[value] = None
    return {name: "; ".join(of_name) or "not recorded" for name, of_name in values.items()}
