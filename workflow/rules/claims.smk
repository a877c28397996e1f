"""Ledger of the papers' claims, tested on the run's results."""


rule claims:
    input:
        code=closure("claims"),
        claims="config/published/claims.csv",
        data=measured(RUN),
    output:
        RESULTS / "claims.csv",
    log:
        LOGS / "claims.log",
    resources:
        **needs("claims"),
    params:
        code=function_hash("claims"),
        results=RESULTS,
        settings=DECISIVE,
    message:
        "Test the papers' claims"
    shell:
        "replicate claims {params.results} --output {output} > {log} 2>&1"
