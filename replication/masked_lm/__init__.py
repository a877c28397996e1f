"""Masked language modelling: train an entmax RoBERTa, and measure what predicted graphs and blocks do to it."""
