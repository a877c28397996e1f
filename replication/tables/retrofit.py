"""A sparsified pretrained encoder: comparison of rules, and results of tuned heads."""

import numpy as np

from replication.claims.retrofit import TARGET, left_out, points_of, sparsities_at
from replication.files.paths import ROOT
from replication.predictors.methods import RULES
from replication.results.measurements import read_rules, read_sparsified
from replication.tables.markers import markdown
from sparselib.huggingface import read_report

FOLDER = ROOT / "reported" / "minilm" / "retrofit"


def leaders() -> str:
    """Return each rule's sparsity at the target recall, the sparsest first."""
    points = points_of(read_rules(FOLDER))
    rows = []
    for method in (method for method in RULES if method in set(points.table["method"])):
        values = sparsities_at(points, method, TARGET)
        if np.isfinite(values).all():
            sparsity = left_out(method, values, points.units)
            low, high = sparsity.interval
            rows.append((sparsity.value, [RULES[method].label, f"{sparsity.value:.1f} ({low:.1f} to {high:.1f})"]))
    return markdown(
        ["rule", f"pairs left out at a recall of {TARGET}, % (95 % interval)"],
        [row for _, row in sorted(rows, reverse=True)],
    )


def tuned() -> str:
    """Return the results of tuned heads on other text, a row per target."""
    rows = []
    for target, measured in read_sparsified(FOLDER).items():
        report = read_report(FOLDER / "sparsified" / f"recall{target}")
        heads = measured.groupby(["layer", "head"])["recall"].mean()
        dense = sum(head.predictor == "dense" for head in report.heads)
        means = measured[["recall", "sparsity", "drift", "cosine"]].mean()
        cells = [f"{means[name]:.3f}" for name in ("recall", "sparsity", "drift", "cosine")]
        rows.append(
            [f"{target:g}", f"{(heads < target).sum()} of {len(heads)}", f"{heads.min():.3f}", str(dense), *cells]
        )
    columns = [
        "target",
        "heads below it",
        "least of a head",
        "dense heads",
        "mean recall",
        "pairs left out",
        "drift",
        "cosine",
    ]
    return markdown(columns, rows)
