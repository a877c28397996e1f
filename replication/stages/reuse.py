"""Take over the files of another run."""

from pathlib import Path
from typing import Annotated

import typer


def reuse(
    source: Annotated[Path, typer.Argument(help="folder of a run below results/, whose files are linked, not copied")],
    configs: Annotated[
        list[Path],
        typer.Option(
            "--config", help="configuration of the new run; repeat: later files override keys of earlier ones"
        ),
    ],
) -> None:
    """Start a run with what another one made by the same steps from the same settings and inputs."""
    import os

    import yaml
    from snakemake.utils import update_config

    from replication.config import load, parse
    from replication.files.manifest import MANIFEST, changing, options_hash, read_manifest
    from replication.files.runs import CONFIGURATION, place_of
    from replication.files.verification import files_of, inputs
    from replication.run.layout import results_folder
    from replication.stages.ledger import write_configuration
    from replication.steps import steps
    from replication.steps.reuse import unchanged

    settings: dict[str, object] = {}
    for path in configs:
        update_config(settings, yaml.safe_load(path.read_text(encoding="utf-8")))
    new = parse(settings, files=False)
    target = results_folder(new.profile)
    if (target / MANIFEST).exists():
        raise ValueError(f"{target}: must be a new run, got one with files; change `profile` in {configs[-1]}")
    old = load(source / CONFIGURATION)
    places = [
        path.relative_to(target) for step in unchanged(list(steps(old)), list(steps(new))) for path in step.outputs
    ]
    there = [place for place in places if (source / place).exists()]
    inputs(*(source / place for place in there))
    listed = read_manifest(source)
    write_configuration(new, target / CONFIGURATION)
    linked = 0
    with changing(target) as manifest:
        manifest["machines"] = listed.get("machines", {}) | manifest.get("machines", {})
        for place in there:
            path = source / place
            for file in [path] if path.is_file() else files_of(path):
                at = target / file.relative_to(source)
                at.parent.mkdir(parents=True, exist_ok=True)
                os.link(file, at)
                entry = listed["made"][place_of(file)]
                manifest["made"][place_of(at)] = entry | {"configuration": options_hash(new.decisive())}
                linked += 1
    others = f"snakemake --cores 2 --configfile {' '.join(map(str, configs))}"
    typer.echo(f"{target}: {linked} files of {source}; to make the others: {others}")
