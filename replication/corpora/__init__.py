"""Corpora: one that this package writes itself, and loaders for folders and Hugging Face datasets."""
