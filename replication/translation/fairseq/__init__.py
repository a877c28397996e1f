"""fairseq 0.12.2 with any attention normaliser, predicted graphs and CoWord dropout.

``python -m replication.translation.fairseq train|preprocess|generate ...`` takes fairseq's own arguments and always
passes ``--user-dir``; ``--arch sparse_transformer`` is the model. Importing this package makes fairseq importable.
"""

import argparse
import dataclasses
import logging

import torch

# fairseq's dataclasses have dataclass instances as defaults, and Python 3.11 rejects defaults that are not hashable. By default
# @dataclass sets __hash__ to None for classes with eq and without frozen; this entry stops it.
dataclasses._hash_action[(False, True, False, False)] = None
# fairseq's checkpoints contain the command line beside the weights, and torch must be allowed to load its class.
torch.serialization.add_safe_globals([argparse.Namespace])

# Importing fairseq's tasks logs a recommendation of a speech package.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
_handlers = list(logging.getLogger().handlers)
import fairseq  # noqa: E402, F401  (needs the two settings above)

# Importing fairseq makes the root logger print to stdout, which only the program should decide.
for _handler in set(logging.getLogger().handlers) - set(_handlers):
    logging.getLogger().removeHandler(_handler)
