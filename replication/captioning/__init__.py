"""Image captioning: pictures with captions, a transformer that describes them, and how good its descriptions are."""
