"""fairseq's own commands with this package's model registered: ``python -m sparselib.integrations.fairseq train ...``."""

import sys

from sparselib.integrations.fairseq.commands import COMMANDS

if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
    sys.exit(f"usage: python -m sparselib.integrations.fairseq {{{','.join(COMMANDS)}}} [fairseq's arguments]")
COMMANDS[sys.argv[1]](sys.argv[2:])
