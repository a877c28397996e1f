"""Character language models with a memory: Transformer-XL and Adaptive Attention Span, each with any normalizer."""
