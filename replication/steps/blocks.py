"""Efficient Sparsefinder: chunk projections, perplexity under predicted blocks, and timings, for every block size."""

from collections.abc import Iterator

from replication.run.layout import MaskedLM, tokenizer_files
from replication.steps.step import Declaring, Step

BASE = "masked_lm"
#: Keys that decide what is fitted. Fitting does not depend on K, so that adding a K does not fit the students again.
FITTED = ("sizes", "clusters", "pooling")
CHOSEN = (*FITTED, "counts", "metric")


def block_steps(at: Declaring) -> Iterator[Step]:
    """Yield the steps of blocks, if the configuration predicts any."""
    section, seeds = at.run.masked_lm, at.run.student_seeds
    if section.blocks is None:
        return
    files, blocks, layers, sizes = (
        MaskedLM(at.results / BASE),
        f"{BASE}/blocks",
        range(section.layers),
        section.blocks.sizes,
    )
    students = [
        files.block_student(size, seed, kind, layer)
        for size in sizes
        for seed in seeds
        for kind in ("projections", "centroids")
        for layer in layers
    ]
    reads = [files.model, *tokenizer_files(files.tokenizer), files.tokens("valid"), *students]
    yield Step(
        command="fit_blocks",
        message="Train projections and centroids of blocks",
        reads=[files.graphs("train", layer) for layer in layers],
        makes=students,
        sees=at.see(BASE, "layers", "projection", "cluster_points")
        | at.see(blocks, *FITTED)
        | at.see("", "student_seeds"),
        priority=1,
    )
    # `model` has the alpha of blocks' entmax; a model with another one is trained anew.
    shared = at.see(BASE, "layers", "model", "evaluation") | at.see(blocks, *CHOSEN)
    yield Step(
        command="evaluate_blocks",
        message="Evaluate the masked language model under predicted blocks",
        reads=reads,
        makes=[
            path(size, seed)
            for path in (files.blocks_evaluated, files.block_losses)
            for size in sizes
            for seed in seeds
        ],
        sees=shared | at.see("", "student_seeds"),
        priority=1,
    )
    yield Step(
        command="time_blocks",
        message="Time attention over predicted blocks",
        reads=reads,
        makes=[files.blocks_timed(size) for size in sizes],
        sees=shared | at.see(blocks, "repeats") | {"student_seeds": seeds[0]},
        cores="all",
    )
