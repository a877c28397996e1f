"""What fairseq imports for ``--user-dir``: the model registers itself."""

import replication.translation.fairseq.transformer  # noqa: F401
