"""fairseq's own commands with this package's model registered: ``python -m replication.translation.fairseq train ...``."""

import sys

from replication.translation.fairseq.commands import COMMANDS

if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
    sys.exit(f"usage: python -m replication.translation.fairseq {{{','.join(COMMANDS)}}} [fairseq's arguments]")
COMMANDS[sys.argv[1]](sys.argv[2:])
