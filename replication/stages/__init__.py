"""The command line: one subcommand per stage, the same by hand and under the workflow."""

from importlib import import_module
from pathlib import Path

import typer
from typer.core import TyperGroup

from replication.stages.options import stage

# Each is a function in the module of its name, beside its class Command if it has one of its own.
GROUPS = {
    "Texts": ("corpus", "tokenize", "parallel_corpus", "binarize", "characters", "pictures"),
    "Training": (
        "train_masked_lm",
        "train_translation",
        "train_characters",
        "train_forms",
        "train_normalizers",
        "train_captioner",
    ),
    "Attention graphs": (
        "extract",
        "extract_decoder",
        "project",
        "cluster",
        "sweep",
        "coreference",
        "tags",
        "factorised",
        "attention_parts",
    ),
    "Models under predicted graphs": (
        "perplexity",
        "replace",
        "bleu",
        "decode",
        "measure_characters",
        "character_baselines",
        "measure_forms",
        "measure_pronouns",
        "measure_captioners",
    ),
    "Blocks and time": ("fit_blocks", "evaluate_blocks", "time_blocks", "time_steps", "normalizer_speed", "scaling"),
    "A model that one has": ("measure_rules", "sparsify"),
    "Claims": ("configuration", "printed", "claims", "report"),
    "Checkpoints and archives": ("ship", "weights", "compare_weights", "archive", "replay"),
}
STAGES = {name: group for group, names in GROUPS.items() for name in names}
EXAMPLES = Path(__file__).with_name("examples.txt")


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
        cls, group = getattr(module, "Command", None), STAGES[name]
        one.command(cmd_name, cls=cls, rich_help_panel=group, epilog=_shown(example(cmd_name)))(
            stage(getattr(module, name))
        )
        return typer.main.get_command(one)


def example(command: str) -> str:
    """A command of the default run, with all that it needs. Raises ``KeyError`` if there is none."""
    commands = EXAMPLES.read_text(encoding="utf-8").strip().split("\n\n")
    return {text.split()[1]: text for text in commands}[command]


def _shown(text: str) -> str:
    """As typer keeps it: it makes one line of those that no empty one parts, and takes brackets for marks."""
    return "As in the default run:\n\n" + text.replace("[", "\\[")


app = typer.Typer(cls=Stages, no_args_is_help=True, pretty_exceptions_show_locals=False, help=__doc__)


@app.callback()
def replicate() -> None:
    """A callback, even one that does nothing, makes an app without commands of its own a group."""
