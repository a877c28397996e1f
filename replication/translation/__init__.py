"""Machine translation with fairseq: data, training, decoding, and measuring decoder self-attention."""

import replication.translation.fairseq  # noqa: F401  (makes fairseq importable, before any module here imports it)
