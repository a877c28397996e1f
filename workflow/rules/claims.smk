"""Ledger of the papers' claims, tested on the run's results."""


rule claims:
    input:
        claims="config/published/claims.csv",
        data=measured(RUN),
        # The ledger reads none of these, but refuses a run with files that a running job has not listed yet.
        others=OWN
        + [
            path
            for notebook in NOTEBOOKS.values()
            for path in notebook.reads
            if path.is_relative_to(RESULTS) and path != RESULTS / "claims.csv"
        ],
    output:
        RESULTS / "claims.csv",
    log:
        LOGS / "claims.log",
    resources:
        **needs("claims"),
    params:
        code=closure_hash("claims"),
        results=RESULTS,
        settings=DECISIVE,
    message:
        "Test the papers' claims"
    shell:
        "replicate claims {params.results} --output {output} > {log} 2>&1"
