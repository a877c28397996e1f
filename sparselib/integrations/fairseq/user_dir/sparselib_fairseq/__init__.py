"""What fairseq imports for ``--user-dir``: the model registers itself."""

import sparselib.integrations.fairseq.transformer  # noqa: F401
