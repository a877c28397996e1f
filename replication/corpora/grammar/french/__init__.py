"""Abstract clauses put into French words."""
