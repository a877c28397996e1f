"""Sparsified pretrained models: current selection rules beside Sparsefinder's, and heads tuned to a target recall."""
