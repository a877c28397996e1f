"""Putting entmax and predicted graphs into other libraries' models."""
