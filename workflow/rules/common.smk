"""Paths and lists that several stages share."""

import json

PROFILE = config["profile"]
RESULTS = f"results/{PROFILE}"
MASKED_LM = f"{RESULTS}/masked_lm"
SETTINGS = config["masked_lm"]
SEEDS = config["student_seeds"]
SPLITS = ["train", "valid"]
LAYERS = [f"{layer:02}" for layer in range(SETTINGS["layers"])]
METHODS = json.dumps(SETTINGS["methods"])
WINDOWS = " ".join(f"--window {width}" for width in SETTINGS["windows"])


def modules(*names):
    """Files of sparselib whose edit makes a stage's results stale; Snakemake does not see imports."""
    return [f"sparselib/{name}.py" for name in names]


PREDICTORS = modules(
    "predictors/buckets",
    "predictors/clustering",
    "predictors/distance",
    "predictors/hashing",
    "predictors/pattern",
    "predictors/quantization",
    "predictors/routing",
    "predictors/topk",
    "masks/local",
    "masks/sampled",
    "masks/global_tokens",
)
