"""Masked language models with entmax: training, and measurements with predicted graphs and blocks."""
