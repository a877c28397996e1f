"""Files of a run: paths, atomic writes, reading, provenance, integrity and shipped checkpoints."""
