"""RO-Crate metadata of an archive: its files, the stages that made them, and the stages' inputs.

The profile is Process Run Crate 0.5 (Leo et al. 2024, *Recording provenance of workflow runs with RO-Crate*). One
``CreateAction`` has all files that a stage made from the same inputs, according to the run's manifest
(:mod:`replication.files.manifest`).
"""

import json
import subprocess
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from replication.files.machines import joined, machines
from replication.files.manifest import checksum

#: File name that RO-Crate prescribes.
METADATA = "ro-crate-metadata.json"
CRATE = "https://w3id.org/ro/crate/1.1"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
LICENSE = "https://spdx.org/licenses/MIT"
AUTHORS = "#authors"
SHA256 = "https://w3id.org/ro/terms/workflow-run#sha256"
FORMATS = {
    ".csv": "text/csv",
    ".ipynb": "application/x-ipynb+json",
    ".json": "application/json",
    ".lock": "text/plain",
    ".parquet": "application/vnd.apache.parquet",
    ".pdf": "application/pdf",
    ".safetensors": "application/octet-stream",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".yaml": "application/yaml",
}


def metadata(results: Path, files: Iterable[Path], manifest: Mapping[str, dict]) -> bytes:
    """Return JSON-LD that describes files of a run.

    Parameters
    ----------
    results : Path
        Folder of the run's results.
    files : iterable of Path
        Files of the archive, most of them below ``results``.
    manifest : mapping
        The run's manifest.
    """
    files = sorted(files)
    described = [_file(path) for path in files]
    origin = joined(machines(manifest))
    actions, programs = _actions(results, files, manifest["made"], origin["source"])
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Sparse attention reproduced: the run {results.name}",
        "description": "Configuration, models, measurements, tables, figures and the ledger of claims of a run; "
        "`make replay` judges and draws everything from it again.",
        "datePublished": now,
        "license": {"@id": LICENSE},
        "author": {"@id": AUTHORS},
        "conformsTo": {"@id": PROFILE},
        "hasPart": _links(file["@id"] for file in described),
        "mentions": _links(action["@id"] for action in actions),
    }
    about = {
        "@id": METADATA,
        "@type": "CreativeWork",
        "conformsTo": {"@id": CRATE},
        "about": {"@id": "./"},
    }
    software = {
        "@id": "#replicate",
        "@type": "SoftwareApplication",
        "name": "replicate",
        "description": "The stages of the reproduction",
        "softwareVersion": f"source {origin['source']}",
        "softwareRequirements": ", ".join(
            f"{name} {origin[name]}" for name in origin if name not in ("source", "hardware")
        ),
        "processorRequirements": origin["hardware"],
    }
    licence = {
        "@id": LICENSE,
        "@type": "CreativeWork",
        "name": "MIT License",
        "description": "License of the code; texts have their own licenses",
    }
    authors = {"@id": AUTHORS, "@type": "Person", "name": _user()}
    profile = {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"}
    graph = [about, root, authors, licence, profile, software, *programs, *actions, *described]
    return json.dumps({"@context": [f"{CRATE}/context", {"sha256": SHA256}], "@graph": graph}, indent=1).encode()


def _user() -> str:
    """Return the name of the user as git has it: whoever made the run is its author, not who wrote the code."""
    try:
        done = subprocess.run(["git", "config", "user.name"], capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def _file(path: Path) -> dict:
    entity = {
        "@id": _id(path),
        "@type": "File",
        "name": path.as_posix(),
        "contentSize": str(path.stat().st_size),
        "sha256": checksum(path),
    }
    return entity | ({"encodingFormat": FORMATS[path.suffix]} if path.suffix in FORMATS else {})


def _actions(results: Path, files: list[Path], made: Mapping[str, dict], source: str) -> tuple[list[dict], list[dict]]:
    """Return an action for each stage and set of inputs in a manifest, and each stage as a program."""
    outputs_by_action, archived = {}, set(files)
    for place, entry in made.items():
        if results / place in archived:
            key = (entry["stage"].split()[0], tuple(sorted(entry["inputs"].items())))
            outputs_by_action.setdefault(key, []).append(results / place)
    actions = []
    for number, ((stage, origins), outputs) in enumerate(outputs_by_action.items()):
        # Inputs that the archive leaves out, such as tokens and graphs, are described by their checksums.
        inputs = [results / place for place, _ in origins]
        missing = [f"{place} (SHA-256 {sha256}...)" for place, sha256 in origins if results / place not in archived]
        actions.append(
            {
                "@id": f"#action-{number}",
                "@type": "CreateAction",
                "name": f"replicate {stage.replace('_', '-')}",
                "description": f"also made from {', '.join(missing)}" if missing else "all inputs are in this archive",
                "instrument": {"@id": f"#{stage}"},
                "agent": {"@id": AUTHORS},
                "object": _links(_id(path) for path in inputs if path in archived),
                "result": _links(map(_id, outputs)),
                "endTime": _ended(outputs),
            }
        )
    stages = sorted({stage for stage, _ in outputs_by_action})
    programs = [
        {
            "@id": f"#{stage}",
            "@type": "SoftwareApplication",
            "name": f"replicate {stage.replace('_', '-')}",
            "softwareVersion": f"source {source}",
            "isPartOf": {"@id": "#replicate"},
        }
        for stage in stages
    ]
    return actions, programs


def _links(ids: Iterable[str]) -> list[dict] | dict:
    """Return references as RO-Crate recommends them: a single one is not in a list."""
    links = [{"@id": identifier} for identifier in ids]
    return links[0] if len(links) == 1 else links


def _ended(outputs: list[Path]) -> str:
    last = max(path.stat().st_mtime for path in outputs)
    return datetime.fromtimestamp(last).astimezone().isoformat(timespec="seconds")


def _id(path: Path) -> str:
    return quote(path.as_posix())
