"""Write `config/README.md` and `config/schema.json`: ``python -m replication.config``."""

from replication.config.reference import write

write()
