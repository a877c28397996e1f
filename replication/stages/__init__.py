"""The command line: one subcommand per stage, the same by hand and under the workflow."""

from importlib import import_module

import typer
from typer.core import TyperGroup

from replication.stages.options import stage

# Each is a function in the module of its name, beside its class Command if it has one of its own.
STAGES = (
    "corpus",
    "tokenize",
    "train_masked_lm",
    "perplexity",
    "extract",
    "replace",
    "project",
    "cluster",
    "sweep",
    "coreference",
    "tags",
    "fit_blocks",
    "evaluate_blocks",
    "time_blocks",
    "parallel_corpus",
    "binarize",
    "train_translation",
    "extract_decoder",
    "bleu",
    "decode",
    "characters",
    "train_characters",
    "measure_characters",
    "character_baselines",
    "train_forms",
    "measure_forms",
    "measure_pronouns",
    "train_normalizers",
    "normalizer_speed",
    "scaling",
    "measure_rules",
    "sparsify",
    "factorised",
    "configuration",
    "printed",
    "claims",
    "ship",
    "weights",
    "compare_weights",
    "report",
    "archive",
    "replay",
)


class Stages(TyperGroup):
    """Imports a stage when it is asked for: its results then depend on its own module, and on no other stage's."""

    def __init__(self, **settings) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(name.replace("_", "-") for name in STAGES)

    def get_command(self, ctx: typer.Context | None, cmd_name: str):
        if cmd_name not in self.commands:
            return None
        name = cmd_name.replace("-", "_")
        module = import_module(f"{__name__}.{name}")
        one = typer.Typer(add_completion=False, pretty_exceptions_show_locals=False)
        one.command(cmd_name, cls=getattr(module, "Command", None))(stage(getattr(module, name)))
        return typer.main.get_command(one)


app = typer.Typer(cls=Stages, no_args_is_help=True, pretty_exceptions_show_locals=False, help=__doc__)


@app.callback()
def replicate() -> None:
    """A callback, even one that does nothing, makes an app without commands of its own a group."""
