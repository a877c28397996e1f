"""What the papers claim, tested on what was measured."""


rule claims:
    input:
        code=closure("claims"),
        claims="config/published/claims.csv",
        data=MEASURED,
    output:
        report(
            f"{RESULTS}/claims.csv",
            caption="../report/claims.rst",
            category="Claims",
        ),
    log:
        f"{RESULTS}/logs/claims.log",
    params:
        scale="--at-paper-scale" if PROFILE == "paper" else "",
    message:
        "Test the claims of the papers"
    shell:
        "replicate claims --published {input.claims} --results $(dirname {output}) {params.scale} --output {output} > {log} 2>&1"


TABLES["claims"] = [f"{RESULTS}/claims.csv"]
