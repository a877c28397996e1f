"""The help of `replicate`: headings, and a text for every option and argument."""

import pytest
import typer
from typer.testing import CliRunner

from replication.stages import MODULE_OF, app

GROUP = typer.main.get_command(app)


@pytest.mark.parametrize("function", MODULE_OF)
def test_every_option_has_a_help(function):
    name = function.replace("_", "-")
    command = GROUP.get_command(typer.Context(GROUP), name)
    assert command.help.strip().endswith(".")
    assert [option.name for option in command.params if not option.help] == []


def test_commands_stand_below_the_headings_of_their_modules():
    text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    headings = ("Read and write texts", "Train models", "Judge the claims")
    places = [
        text.index(part)
        for part in (headings[0], " corpus ", headings[1], " train-masked-lm ", headings[2], " claims ")
    ]
    assert places == sorted(places)
