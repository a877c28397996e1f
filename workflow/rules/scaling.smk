"""Time and memory of block-sparse attention and its peers by sequence length."""


rule scaling:
    output:
        scaling_table(PROFILE),
    log:
        LOGS / "scaling.log",
    # Taking all cores keeps other jobs from disturbing the timings.
    threads: CORES
    resources:
        **needs("scaling"),
    params:
        code=closure_hash("scaling"),
        config=CONFIGURATION,
        settings=RUN.scaling.given(),
        seed=RUN.seed,
    message:
        "Time attention by sequence length"
    shell:
        "replicate scaling --threads {threads} --config {params.config} > {log} 2>&1"
