"""Package that fairseq imports for ``--user-dir``; importing it registers the model."""

import replication.translation.fairseq.transformer  # noqa: F401
