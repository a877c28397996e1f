"""The configuration of the workflow as typed models: one YAML file is a profile, one :class:`Config`.

:func:`parse` and :func:`load` report all problems of a profile at once, each with the full path of its key, such as
``masked_lm.tag_clustrs: unknown key; did you mean tag_clusters?``. ``python -m replication.config`` writes the reference of all
keys, ``config/README.md``, and the JSON schema for editors, ``config/schema.json``.
"""

from replication.config.errors import ConfigurationError
from replication.config.profile import Config, load, parse
from replication.schema import Section

__all__ = ["Config", "ConfigurationError", "Section", "load", "parse"]
