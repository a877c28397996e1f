"""Measurements of a run: their tables, settings, points and budgets."""
