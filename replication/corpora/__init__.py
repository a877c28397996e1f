"""Readers of text: folders, packages and Hugging Face datasets, with splits, subwords, tags and word alignments."""
