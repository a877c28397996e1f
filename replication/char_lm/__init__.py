"""Character language modelling with a memory: Transformer-XL and Adaptive Attention Span, each with any normaliser."""
