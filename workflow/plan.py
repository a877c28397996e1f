"""Plan of a run in its manifest: the files of its configuration, and the options that they must be made with.

Snakemake compares the settings of jobs with those that it recorded in this checkout. Its record says nothing about results that
were copied here, and ``--touch`` rewrites it. The manifest travels with the results and has the settings that made them.
"""

from pathlib import Path, PurePosixPath

from replication.files.manifest import configuration_of, options_hash, planned_as, read_manifest
from replication.files.provenance import source_hash
from replication.files.runs import MANIFEST, is_left_out

#: Parameters of jobs that do not change their results, or that the code's hash covers.
NO_OPTIONS = ("code", "config", "words")


def planned(jobs, results: Path) -> dict[str, dict[str, str]]:
    """Return options and code of every file and folder that a stage makes below a run's folder, by its place."""
    plan = {}
    for job in jobs:
        if " replicate " in f" {job.shellcmd}":
            options = options_hash({key: value for key, value in job.params.items() if key not in NO_OPTIONS})
            plan |= {
                place: {"options": options, "code": job.params["code"]}
                for place in places([job], results)
                if not is_left_out(place)
            }
    return plan


def places(jobs, results: Path) -> list[str]:
    """Return the places of the files and folders below a run's folder that jobs make."""
    outputs = (Path(output) for job in jobs for output in job.output)
    return [path.relative_to(results).as_posix() for path in outputs if path.is_relative_to(results)]


def foreign(results: Path, settings: dict[str, object], known: Path) -> str:
    """Return why results cannot be continued, or an empty string.

    Parameters
    ----------
    results : Path
        Folder of the run.
    settings : dict
        The configuration.
    known : Path
        File with the hashes of the configurations that this checkout has run the profile with.
    """
    there = configuration_of(read_manifest(results))
    here = known.read_text(encoding="utf-8").split() if known.exists() else []
    if there in (None, options_hash(settings), *here):
        return ""
    return (
        f"{results} was made with another configuration than this one, and not in this checkout: compare"
        f" {results}/config.yaml; to start anew, move {results} away or change `profile`"
    )


def lost(results: Path, settings: dict[str, object]) -> list[Path]:
    """Return the files that are not there, but should be: Snakemake misses only those that it needs for a later step.

    These are the listed ones and, if the configuration is still the same, the planned ones: when a run that makes a file again
    is killed, the file is gone and not listed, and later ones are still there.

    Parameters
    ----------
    results : Path
        Folder of the run.
    settings : dict
        The configuration.

    Raises
    ------
    FileNotFoundError
        If one lies in a folder that a stage makes as a whole; Snakemake would take the folder for complete.
    """
    manifest = read_manifest(results)
    plan, missing = manifest["plan"], [place for place in manifest["made"] if not (results / place).exists()]
    for place in missing:
        folder = next((name for name in map(str, PurePosixPath(place).parents) if name in plan), None)
        if folder and (results / folder).exists():
            raise FileNotFoundError(
                f"{results / place} is lost: move {results / folder} away, which one step makes as a whole, and run again"
            )
    if configuration_of(manifest) == options_hash(settings):
        missing = [place for place in plan if not (results / place).exists()]
    return [results / place for place in missing if place in plan]


def untouchable(results: Path, plan: dict[str, dict[str, str]]) -> str:
    """Return why ``--touch`` must not mark results as current, or an empty string."""
    made = read_manifest(results)["made"]
    if not (results / MANIFEST).exists():
        return ""  # Stages and the ledger refuse files that are not listed.
    for place, entry in made.items():
        if (current := planned_as(plan, place)) is None:
            continue
        if current["options"] != entry["options"]:
            return (
                f"{results / place} was made with options of another configuration: --touch must not mark it as current"
            )
        # By hand, a stage's code is all of the source.
        if entry["code"] not in (current["code"], source_hash()):
            return f"{results / place} was made by other code: --touch must not mark it as current"
    if missing := [place for place in plan if not any(planned_as({place: True}, name) for name in made)]:
        return f"{results / missing[0]} is not listed in {MANIFEST}: --touch must not mark it as current"
    return ""
