"""Guaranteed outputs of two encoders, from the results of benchmarks/output_guarantee.py."""

import json

from replication.files.paths import ROOT
from replication.tables.markers import markdown

RESULTS = ROOT / "benchmarks" / "results"
#: By the name of a result: the encoder, and the loss of a passage.
MODELS = {
    "minilm": ("all-MiniLM-L6-v2", "its embedding's cosine with the dense model's is below 0.99"),
    "entmax": ("the same, fine-tuned with 1.5-entmax", "share of its masked words that are predicted otherwise"),
}


def read(model: str) -> dict:
    """Return a model's result: its text, the path of the whole tuning, and the report with the certified step."""
    return json.loads((RESULTS / f"output_guarantee_{model}.json").read_text(encoding="utf-8"))


def sentence(model: str) -> str:
    """Return what the report of a model says first, with the text that it was measured on."""
    result = read(model)
    encoder, _ = MODELS[model]
    text = f"{result['passages']} passages of {result['tokens']} tokens from {result['chapters']} chapters of the Bible"
    return f"Measured for {encoder} on {text}: *{result['summary']}*."


def certified() -> str:
    """Return a row per encoder: the loss, what is certified, what was measured, and the pairs left out."""
    rows = []
    for model, (encoder, loss) in MODELS.items():
        result = read(model)
        report = result["report"]
        step = [step for step in report["path"] if step["certified"]][-1]
        rows.append(
            [
                encoder,
                loss,
                f"at most {report['risk']:.0%} with {report['confidence']:.0%} confidence",
                f"{step['loss']:.1%}",
                f"**{step['sparsity']:.0%}**",
            ]
        )
    heading = ["encoder", "loss of a passage", "certified", "measured", "pairs left out"]
    first = read("minilm")
    text = f"{first['passages']} passages of {first['tokens']} tokens from {first['chapters']} chapters of the Bible"
    return f"{text}; half of the chapters build the path, half test it.\n\n{markdown(heading, rows)}"
