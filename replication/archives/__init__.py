"""Archives: a run's results in one checksummed file, and the replay of its tables and figures."""
