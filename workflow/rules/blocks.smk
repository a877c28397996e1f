"""Efficient Sparsefinder: chunk projections, perplexity under predicted blocks, and timings, for every block size."""

BLOCKS = RUN.masked_lm.blocks
BLOCK_FILES = MaskedLM(RESULTS / "masked_lm")
BLOCK_LOGS = LOGS / "masked_lm" / "blocks"
STUDENTS = [
    BLOCK_FILES.block_student(size, seed, kind, layer)
    for size in BLOCKS.sizes
    for seed in SEEDS
    for kind in ("projections", "centroids")
    for layer in range(RUN.masked_lm.layers)
]
# Fitting does not depend on K, so that adding a K does not fit the students again.
FITTED = picked(BLOCKS, "sizes", "clusters", "pooling")
CHOSEN = picked(BLOCKS, "sizes", "counts", "clusters", "pooling", "metric")


rule fit_blocks:
    input:
        graphs=[
            BLOCK_FILES.graphs("train", layer) for layer in range(RUN.masked_lm.layers)
        ],
    output:
        STUDENTS,
    log:
        BLOCK_LOGS / "fit.log",
    priority: 1
    resources:
        **needs("fit_blocks"),
    params:
        code=closure_hash("fit-blocks"),
        config=CONFIGURATION,
        settings=picked(RUN.masked_lm, "projection", "cluster_points"),
        blocks=FITTED,
    message:
        "Train projections and centroids of blocks"
    shell:
        "replicate fit-blocks --config {params.config} > {log} 2>&1"


rule evaluate_blocks:
    input:
        model=BLOCK_FILES.model,
        tokenizer=tokenizer_files(BLOCK_FILES.tokenizer),
        tokens=BLOCK_FILES.tokens("valid"),
        students=STUDENTS,
    output:
        [
            path(size, seed)
            for path in (BLOCK_FILES.blocks_evaluated, BLOCK_FILES.block_losses)
            for size in BLOCKS.sizes
            for seed in SEEDS
        ],
    log:
        BLOCK_LOGS / "evaluate.log",
    priority: 1
    resources:
        **needs("evaluate_blocks"),
    params:
        code=closure_hash("evaluate-blocks"),
        config=CONFIGURATION,
        settings=picked(RUN.masked_lm, "evaluation"),
        blocks=CHOSEN,
    message:
        "Evaluate the masked language model under predicted blocks"
    shell:
        "replicate evaluate-blocks --config {params.config} > {log} 2>&1"


# Taking all cores keeps other jobs from disturbing the timings.
rule time_blocks:
    input:
        model=BLOCK_FILES.model,
        tokenizer=tokenizer_files(BLOCK_FILES.tokenizer),
        tokens=BLOCK_FILES.tokens("valid"),
        students=STUDENTS,
    output:
        [BLOCK_FILES.blocks_timed(size) for size in BLOCKS.sizes],
    log:
        BLOCK_LOGS / "time.log",
    threads: CORES
    resources:
        **needs("time_blocks"),
    params:
        code=closure_hash("time-blocks"),
        config=CONFIGURATION,
        settings=picked(RUN.masked_lm, "evaluation"),
        blocks=CHOSEN | picked(BLOCKS, "repeats"),
        seed=SEEDS[0],
    message:
        "Time attention over predicted blocks"
    shell:
        "replicate time-blocks --config {params.config} > {log} 2>&1"
