"""Stages as they are called by hand, with their options as keywords."""

import json

from typer.testing import CliRunner

from replication.stages import app


def run(command: str, **options):
    """Run a stage; lists repeat the option, dictionaries become JSON."""
    arguments = [command]
    for name, value in options.items():
        for one in value if isinstance(value, list | tuple) else [value]:
            arguments += [f"--{name.replace('_', '-')}", json.dumps(one) if isinstance(one, dict) else str(one)]
    return CliRunner().invoke(app, arguments)
