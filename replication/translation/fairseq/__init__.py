"""fairseq 0.12.2 with any attention normaliser, predicted graphs and CoWord dropout.

``python -m replication.translation.fairseq train|preprocess|generate ...`` takes fairseq's own arguments and always
passes ``--user-dir``; ``--arch sparse_transformer`` is the model. Importing this package makes fairseq importable.
"""

import argparse
import dataclasses
import logging

import torch

# fairseq's dataclasses have instances of other dataclasses as defaults. Python 3.11 refuses a default whose class has no
# hash, which is what its @dataclass leaves them without: with eq and without frozen, set no __hash__ to None.
dataclasses._hash_action[(False, True, False, False)] = None
# Its checkpoints hold the command line beside the weights; torch loads no other class from them.
torch.serialization.add_safe_globals([argparse.Namespace])

# It recommends a package for speech whenever its tasks are imported.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
_handlers = list(logging.getLogger().handlers)
import fairseq  # noqa: E402, F401  (after the two lines that it needs)

# Importing fairseq makes the root logger print to stdout; a library leaves that to the program.
for _handler in set(logging.getLogger().handlers) - set(_handlers):
    logging.getLogger().removeHandler(_handler)
