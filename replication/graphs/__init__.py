"""Attention graphs on disk, what is learned from them, and how well grids of predictors recover them."""
