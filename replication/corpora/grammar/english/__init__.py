"""Abstract clauses put into English words."""
