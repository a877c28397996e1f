"""What an archive says of itself: RO-Crate metadata, with what was made by which stage and from what.

The profile is Process Run Crate 0.5 (Leo et al. 2024, *Recording provenance of workflow runs with RO-Crate*): a
``CreateAction`` for every stage that made something of the same inputs, as their seals say (:mod:`replication.files.seals`).
"""

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from replication.files.seals import checksum, sealed
from replication.files.storage import provenance

#: Where RO-Crate asks for it.
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


def metadata(results: Path, files: Iterable[Path]) -> bytes:
    """JSON-LD about files of a run, whose ``results`` most of them are below."""
    files = sorted(files)
    described = [_file(path) for path in files]
    known = provenance()
    actions, programs = _actions(results, files, known["source"])
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
        "hasPart": _links(one["@id"] for one in described),
        "mentions": _links(one["@id"] for one in actions),
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
        "softwareVersion": f"source {known['source']}",
        "softwareRequirements": ", ".join(
            f"{name} {known[name]}" for name in known if name not in ("source", "hardware")
        ),
        "processorRequirements": known["hardware"],
    }
    licence = {
        "@id": LICENSE,
        "@type": "CreativeWork",
        "name": "MIT License",
        "description": "Of the code; texts that a run has read keep their own",
    }
    authors = {"@id": AUTHORS, "@type": "Organization", "name": "The Sparsefinder reproduction authors"}
    profile = {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"}
    graph = [about, root, authors, licence, profile, software, *programs, *actions, *described]
    return json.dumps({"@context": [f"{CRATE}/context", {"sha256": SHA256}], "@graph": graph}, indent=1).encode()


def _file(path: Path) -> dict:
    said = {
        "@id": _id(path),
        "@type": "File",
        "name": path.as_posix(),
        "contentSize": str(path.stat().st_size),
        "sha256": checksum(path),
    }
    return said | ({"encodingFormat": FORMATS[path.suffix]} if path.suffix in FORMATS else {})


def _actions(results: Path, files: list[Path], source: str) -> tuple[list[dict], list[dict]]:
    """What the seals of files tell: an action for each stage and the files that it read, and each stage as a program."""
    made, there = {}, set(files)
    for path in files:
        if (said := sealed(path)) is not None:
            key = (said["stage"], tuple(sorted(said["made_from"].items())))
            made.setdefault(key, []).append(path)
    actions = []
    for number, ((stage, origins), outputs) in enumerate(made.items()):
        # What a stage has read and the archive leaves out, as tokens and graphs, is told by its checksum alone.
        read = [results / place for place, _ in origins]
        missing = [f"{place} (SHA-256 {sha256})" for place, sha256 in origins if results / place not in there]
        actions.append(
            {
                "@id": f"#action-{number}",
                "@type": "CreateAction",
                "name": f"replicate {stage.replace('_', '-')}",
                "description": f"made also from {', '.join(missing)}" if missing else "everything it read is here",
                "instrument": {"@id": f"#{stage}"},
                "agent": {"@id": AUTHORS},
                "object": _links(_id(path) for path in read if path in there),
                "result": _links(map(_id, outputs)),
                "endTime": _ended(outputs),
            }
        )
    stages = sorted({stage for stage, _ in made})
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
    """References as RO-Crate recommends them: one alone is no list."""
    links = [{"@id": one} for one in ids]
    return links[0] if len(links) == 1 else links


def _ended(outputs: list[Path]) -> str:
    last = max(path.stat().st_mtime for path in outputs)
    return datetime.fromtimestamp(last).astimezone().isoformat(timespec="seconds")


def _id(path: Path) -> str:
    return quote(path.as_posix())
