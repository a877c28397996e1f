"""Machine translation with fairseq: data, training, decoding and decoder self-attention."""

import replication.translation.fairseq  # noqa: F401  (must come first: it makes fairseq importable)
