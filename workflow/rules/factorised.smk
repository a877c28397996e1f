"""Reach of Sparse Transformers' patterns, which depend on positions alone and need no trained model."""


rule factorised:
    output:
        reach_table(PROFILE),
    log:
        LOGS / "factorised.log",
    resources:
        **needs("factorised"),
    params:
        code=closure_hash("factorised"),
        config=CONFIGURATION,
    message:
        "Trace information through factorised attention"
    shell:
        "replicate factorised --config {params.config} > {log} 2>&1"
