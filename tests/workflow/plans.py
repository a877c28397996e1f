"""Snakemake's plan of the demo in the folder where this runs, as JSON.

Arguments are edits, each planned alone: ``file``, to which a comment is added, or ``file|old|new``.
"""

import json
import os
import sys
from pathlib import Path

from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, OutputSettings, Quietness, ResourceSettings

sys.path.insert(0, os.getcwd())
from workflow import closure


def dag():
    settings = {"resource_settings": ResourceSettings(cores=2), "config_settings": ConfigSettings()}
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        workflow = api.workflow(**settings, snakefile=Path("Snakefile"))
        workflow.dag().execute_workflow(executor="dryrun")
        return workflow._workflow.dag


def name(job) -> str:
    return " ".join([job.rule.name, *(f"{key}={value}" for key, value in job.wildcards.items())])


def keys_of(value: object) -> set[str]:
    """Return the keys of nested dicts in a job's parameters."""
    if isinstance(value, dict):
        # Settings are passed by their paths, such as masked_lm/projection.
        own = {part for key in value for part in str(key).split("/")}
        return own | {key for inner in value.values() for key in keys_of(inner)}
    return {key for inner in value for key in keys_of(inner)} if isinstance(value, list | tuple) else set()


def everything() -> dict[str, dict]:
    found = dag()
    return {
        name(job): {
            "command": job.shellcmd,
            "code": job.params.get("code"),
            "input": sorted(map(str, job.input)),
            "output": sorted(map(str, job.output)),
            # The ledger and the report state the whole configuration.
            "keys": [] if job.rule.name in ("claims", "report") else sorted(map(str, keys_of(list(job.params)))),
            "folders": sorted(str(path) for path in job.output if path.is_directory),
            "asks": {key: job.resources.get(key) for key in ("mem_mb", "runtime", "gpu")},
            "needs": sorted(map(name, found.dependencies[job])),
        }
        for job in found.jobs
    }


def after_an_edit(path: Path, old: bytes = b"", new: bytes = b"") -> list[str]:
    """Return the jobs to run after a comment at the end of a file, or after another change to it."""
    text, times = path.read_bytes(), path.stat()
    assert text.count(old) == 1 or not old
    path.write_bytes(text.replace(old, new) if old else text + b"\n# edited\n")
    for cached in (value for value in vars(closure).values() if hasattr(value, "cache_clear")):
        cached.cache_clear()
    try:
        return sorted(map(name, dag().needrun_jobs(exclude_finished=False)))
    finally:
        path.write_bytes(text)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


if __name__ == "__main__":
    edits = [argument.split("|") for argument in sys.argv[1:]]
    plans = {"|".join(edit): after_an_edit(Path(edit[0]), *map(str.encode, edit[1:])) for edit in edits}
    print(json.dumps(plans or everything()))
