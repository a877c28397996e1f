"""Archive of a run in one file, from which `replicate replay` redraws everything."""

KEPT = {
    *(Path("config/published/claims.csv"), Path("requirements.lock")),
    *(CONFIGURATION, RESULTS / "claims.csv", *EXECUTED, *PICTURES),
    *measured(RUN),
    *OWN,
    *(path for notebook in NOTEBOOKS.values() for path in notebook.reads),
    *(RESULTS / name / file for name, model in MODELS.items() for file in model.files),
}


# No other rule needs the archive: it is made only by `snakemake archive`.
rule archive:
    input:
        files=sorted(KEPT - {CONFIGURATION}),
        # Not in the archive: notebooks refuse a run whose report is older than its ledger.
        report=RESULTS / "report.html",
    output:
        f"{RESULTS}.zip",
    log:
        LOGS / "archive.log",
    resources:
        **needs("archive"),
    params:
        code=closure_hash("archive"),
        results=RESULTS,
        files=[word for path in sorted(KEPT) for word in ("--file", path)],
    message:
        "Archive the run"
    shell:
        "replicate archive --results {params.results:q} {params.files:q} --output {output:q} > {log} 2>&1"
