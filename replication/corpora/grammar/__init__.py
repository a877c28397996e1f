"""The embedded corpus: a seeded feature grammar that writes documents in English, German and French."""
