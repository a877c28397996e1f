"""A page about the run."""


rule report:
    input:
        code=closure("report"),
        page="replication/report/page.html",
        claims=["config/published/claims.csv", f"{RESULTS}/claims.csv"],
        others=collect("reported/{run}/claims.csv", run=REPORTED),
        configuration=rules.configuration.output,
        notebooks=NOTEBOOKS,
        pictures=PICTURES,
    output:
        f"{RESULTS}/report.html",
    log:
        f"{RESULTS}/logs/report.log",
    resources:
        **needs("report"),
    message:
        "Write the page about the run"
    shell:
        "replicate report --results $(dirname {output}) --output {output} > {log} 2>&1"
