"""Results in one checksummed file, and their tables and figures drawn from it again."""
