"""Image captioning: pictures with captions, transformers that describe them, and scores of their captions."""
