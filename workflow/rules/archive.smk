"""A run in one file, from which everything is drawn again."""

KEPT = {
    *(Path("config/published/claims.csv"), Path("requirements.lock")),
    *(CONFIGURATION, RESULTS / "claims.csv", *EXECUTED, *PICTURES),
    *measured(RUN),
    *(path for notebook in NOTEBOOKS.values() for path in notebook.reads),
    *(RESULTS / name / file for name, model in MODELS.items() for file in model.files),
}


# By its name only.
rule archive:
    input:
        **job("archive"),
        files=sorted(KEPT),
    output:
        f"{RESULTS}.zip",
    log:
        LOGS / "archive.log",
    resources:
        **needs("archive"),
    params:
        code=function_hash("archive"),
        results=RESULTS,
        files=[f"--file {path}" for path in sorted(KEPT)],
    message:
        "Archive the run"
    shell:
        "replicate archive --results {params.results} {params.files} --output {output} > {log} 2>&1"
