"""What the papers claim, tested on what was measured."""


rule claims:
    input:
        code=modules("claims", "results", "metrics"),
        claims="config/published/claims.csv",
        data=[*SWEEPS, *REPLACED, *COREFERENCE, *TAGS],
    output:
        report(
            f"{RESULTS}/claims.csv",
            caption="../report/claims.rst",
            category="Claims",
        ),
    params:
        scale="--at-paper-scale" if PROFILE == "paper" else "",
    conda:
        "../../environment.yml"
    shell:
        "sparselib claims --published {input.claims} --results {MASKED_LM} {params.scale} --output {output}"
