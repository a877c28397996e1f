"""The patterns of Sparse Transformers, which depend on positions alone: no model is trained for them."""


rule factorised:
    input:
        **job("factorised"),
    output:
        reach_table(PROFILE),
    log:
        LOGS / "factorised.log",
    resources:
        **needs("factorised"),
    params:
        code=function_hash("factorised"),
    message:
        "Follow information through factorised attention"
    shell:
        "replicate factorised --config {input.config} > {log} 2>&1"
