"""The command line: one subcommand per stage, the same by hand and under the workflow."""

from importlib import import_module

import typer
from typer.core import TyperGroup

from replication.stages.options import stage

#: Commands by the module that has their functions; its docstring is their heading in the help.
MODULES = {
    "texts": ("corpus", "tokenize", "parallel_corpus", "binarize", "characters", "pictures"),
    "training": (
        "train_masked_lm",
        "train_translation",
        "train_characters",
        "train_forms",
        "train_normalizers",
        "train_captioner",
    ),
    "graphs": (
        "extract",
        "extract_decoder",
        "project",
        "cluster",
        "sweep",
        "coreference",
        "tags",
        "passage",
        "factorised",
        "attention_parts",
    ),
    "models": (
        "perplexity",
        "bleu",
        "measure_characters",
        "character_baselines",
        "measure_forms",
        "measure_captioners",
    ),
    "replaced": ("replace", "decode"),
    "blocks": ("fit_blocks", "evaluate_blocks", "time_blocks", "time_steps", "normalizer_speed", "scaling"),
    "retrofit": ("measure_rules", "sparsify"),
    "ledger": ("configuration", "printed", "claims", "report", "keep", "prune"),
    "notebooks": ("draw",),
    "reuse": ("reuse",),
    "predictors": ("init", "check", "store_predictor"),
    "checkpoints": ("ship", "weights", "compare_weights", "archive", "replay"),
}
#: The module of every command, by the name of its function.
MODULE_OF = {function: module for module, functions in MODULES.items() for function in functions}


class Stages(TyperGroup):
    """Imports a module of stages when one of its commands is called."""

    def __init__(self, **settings) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(function.replace("_", "-") for function in MODULE_OF)

    def get_command(self, ctx: typer.Context | None, cmd_name: str):
        if cmd_name not in self.commands:
            return None
        function = cmd_name.replace("-", "_")
        module = import_module(f"{__name__}.{MODULE_OF[function]}")
        single = typer.Typer(add_completion=False, pretty_exceptions_show_locals=False)
        heading = module.__doc__.strip().rstrip(".")
        single.command(cmd_name, rich_help_panel=heading)(stage(getattr(module, function)))
        return typer.main.get_command(single)


app = typer.Typer(cls=Stages, no_args_is_help=True, pretty_exceptions_show_locals=False, help=__doc__)


@app.callback()
def replicate() -> None:
    """Make the app a group: typer turns a single command without a callback into the app itself."""
