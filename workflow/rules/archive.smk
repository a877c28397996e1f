"""A run in one file, from which everything is drawn again."""

FILES = [
    *["config/published/claims.csv", "requirements.lock"],
    *[f"{RESULTS}/config.yaml", f"{RESULTS}/claims.csv", *NOTEBOOKS, *PICTURES],
    *flatten([MEASURED, *FIGURES.values(), *TABLES.values()]),
    *[
        f"{RESULTS}/{folder}/{file}"
        for folder in MODELS
        for file in LEFT[Path(folder).parts[0]]
    ],
]


# By its name only.
rule archive:
    input:
        code=closure("archive"),
        files=sorted({*FILES}),
    output:
        f"results/{PROFILE}.zip",
    log:
        f"{RESULTS}/logs/archive.log",
    resources:
        **needs("archive"),
    params:
        results=lambda wildcards, output: Path(output[0]).with_suffix(""),
        files=lambda wildcards, input: " ".join(
            f"--file {path}" for path in input.files
        ),
    message:
        "Archive the run"
    shell:
        "replicate archive --results {params.results} {params.files} --output {output} > {log} 2>&1"
