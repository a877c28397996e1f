"""Stages of a small run, called as by hand in a folder that has the run's configuration and results."""

from contextlib import chdir
from pathlib import Path

import yaml
from typer.testing import CliRunner

from replication.files.manifest import add_output, making
from replication.stages import app

PROFILE = "tiny"
CONFIG = "config.yaml"


def configure(folder: Path, *, seed: int = 0, student_seeds: tuple[int, ...] = (1, 2), **sections: object) -> Path:
    """Write a configuration into a folder, and return the folder that its results will have."""
    settings = {"profile": PROFILE, "seed": seed, "student_seeds": list(student_seeds), **sections}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).write_text(yaml.safe_dump(settings, sort_keys=False))
    return folder / "results" / PROFILE


def list_files(folder: Path) -> None:
    """List the files in a folder of a run as if a stage had made them."""
    with making("by hand"):
        for path in folder.rglob("*.*"):
            add_output(path)


def run(folder: Path, command: str, *places: str, config: str | None = CONFIG, **options: object):
    """Run a stage in a folder; lists repeat the option."""
    arguments = [command, *places, *(["--config", config] if config else [])]
    for name, value in options.items():
        for repeated in value if isinstance(value, list | tuple) else [value]:
            arguments += [f"--{name.replace('_', '-')}", str(repeated)]
    with chdir(folder):
        return CliRunner().invoke(app, arguments)


def succeed(folder: Path, command: str, *places: str, **options: object) -> None:
    """Run a stage that must succeed."""
    result = run(folder, command, *places, **options)
    assert result.exit_code == 0, (command, result.output, result.exception)


def assert_one_line(result, named: str) -> None:
    """Check that a stage stopped with one line that names the offending item."""
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    # Progress of loading a model comes first.
    line = result.stderr.splitlines()[-1]
    assert line.startswith("error: ")
    assert named in line
    assert "Traceback" not in result.output
