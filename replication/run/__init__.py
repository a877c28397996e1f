"""What a configuration trains and measures, and where its files are."""
