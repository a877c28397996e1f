"""A model that somebody has, made sparse: today's selection rules beside Sparsefinder's, and each head tuned to a recall."""
