"""Values of ``snakemake --config 'section={key: 8}'``: Snakemake reads those within braces as text."""

import yaml


def with_types(value: object) -> object:
    """Return a value of ``--config`` with numbers, true and false where the text says so.

    >>> with_types({"windows": ["0", "3"], "loss": "set"})
    {'windows': [0, 3], 'loss': 'set'}
    """
    if isinstance(value, dict):
        return {key: with_types(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_types(inner) for inner in value]
    return yaml.safe_load(value) if isinstance(value, str) else value
