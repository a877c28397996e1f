"""Abstract clauses put into German words."""
