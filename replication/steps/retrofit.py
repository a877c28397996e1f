"""Sparsified models without retraining: a comparison of selection rules, and heads tuned to a target recall."""

from collections.abc import Iterator

from replication.run.layout import SPLITS, MaskedLM, Retrofit
from replication.run.text_places import TokenPlace
from replication.steps.step import Declaring, Step, model_in


def retrofit_steps(at: Declaring) -> Iterator[Step]:
    """Yield the steps that sparsify a model."""
    section, files, seeds = at.run.retrofit, Retrofit(at.results / "retrofit"), at.run.student_seeds
    # This run's masked language model uses this run's tokenizer; any other model has its own.
    own = [MaskedLM(at.results / "masked_lm").model] if section.model == "masked_lm" else []
    shared = {
        "reads": [*own, *(files.tokens(split) for split in SPLITS)],
        "pretrained": model_in(TokenPlace(at.run, "retrofit").pretrained),
        "priority": 1,
    }
    yield Step(
        command="measure_rules",
        message="Measure selection rules",
        makes=[files.rules, files.learning],
        sees=at.see("", "retrofit", "student_seeds"),
        predictors={rule.predictor for rule in section.rules.values()},
        **shared,
    )
    for recall in section.recalls:
        yield Step(
            command="sparsify",
            message=f"Tune every head to a recall of {recall}",
            options={"recall": recall},
            makes=[files.sparsified(recall) / name for name in ("measured.parquet", "sparsified.safetensors")],
            sees=at.see("", "retrofit") | {"student_seeds": seeds[0]},
            **shared,
        )
