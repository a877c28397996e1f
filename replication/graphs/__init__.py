"""Attention graphs on disk, students trained on them, and their recall by predictor grids."""
