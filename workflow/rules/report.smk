"""Report page of the run, and its attention explorer."""

PASSAGES = [MaskedLM(RESULTS / "masked_lm").passage] if RUN.masked_lm else []


rule report:
    input:
        page=[
            f"replication/report/{name}"
            for name in ("page.html", "page.css", "page.js", "notebook.css")
        ],
        explorer=[
            f"replication/report/explorer.{ending}" for ending in ("html", "css", "js")
        ],
        passages=PASSAGES,
        claims=["config/published/claims.csv", RESULTS / "claims.csv"],
        others=[Path("reported", name, "claims.csv") for name in REPORTED],
        notebooks=[RESULTS / "notebooks" / f"{name}.ipynb" for name in NOTEBOOKS],
        pictures=PICTURES,
    output:
        page=RESULTS / "report.html",
        explorer=[RESULTS / "explorer.html"] if PASSAGES else [],
        notebooks=[RESULTS / "notebooks" / f"{name}.html" for name in NOTEBOOKS],
    log:
        LOGS / "report.log",
    resources:
        **needs("report"),
    params:
        code=closure_hash("report"),
        results=RESULTS,
        settings=DECISIVE,
    message:
        "Write the report page"
    shell:
        "replicate report {params.results} --output {output.page} > {log} 2>&1"
