"""What `replicate --help` says: groups, a help for every option, and examples that are taken as they stand."""

import shlex

import pytest
import typer
from typer.testing import CliRunner

from replication.stages import GROUPS, STAGES, app, example

COMMANDS = [name.replace("_", "-") for name in STAGES]
GROUP = typer.main.get_command(app)


def command(name: str):
    return GROUP.get_command(typer.Context(GROUP), name)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_has_all_that_the_command_asks_for(name):
    words = shlex.split(example(name).replace("\\\n", " "))
    assert words[:2] == ["replicate", name]
    command(name).make_context(name, words[2:])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help(name):
    assert [option.name for option in command(name).params if not option.help] == []


def test_commands_stand_in_their_groups_and_examples_below_their_options():
    said = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    assert all(f" {group} " in said for group in GROUPS)
    places = [said.index(f" {name} ") for name in ("corpus", "train-masked-lm", "sweep", "claims", "archive")]
    assert places == sorted(places)
    shown = CliRunner().invoke(app, ["claims", "--help"], env={"COLUMNS": "200"}).output
    assert "--published config/published/claims.csv \\" in shown
