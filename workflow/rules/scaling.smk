"""Time and memory of block-sparse attention and its peers against the length of the sequence."""


rule scaling:
    input:
        **job("scaling"),
    output:
        scaling_table(PROFILE),
    log:
        LOGS / "scaling.log",
    # All of them, and so nothing runs beside what is timed.
    threads: CORES
    resources:
        **needs("scaling"),
    params:
        code=function_hash("scaling"),
        settings=RUN.scaling.given(),
        seed=RUN.seed,
    message:
        "Time attention against its length"
    shell:
        "replicate scaling --threads {threads} --config {input.config} > {log} 2>&1"
