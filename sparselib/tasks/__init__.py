"""Tasks: train and evaluate a model, and nothing else."""
