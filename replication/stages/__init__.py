"""The command line: one subcommand per stage, the same by hand and under the workflow."""

import typer

from replication.stages import (
    blocks,
    characters,
    corpora,
    forms,
    ledger,
    masked_lm,
    normalizer_speed,
    scaling,
    students,
    translation,
)

app = typer.Typer(no_args_is_help=True, pretty_exceptions_show_locals=False, help=__doc__)
corpora.register(app)
masked_lm.register(app)
students.register(app)
blocks.register(app)
translation.register(app)
characters.register(app)
forms.register(app)
normalizer_speed.register(app)
scaling.register(app)
ledger.register(app)
