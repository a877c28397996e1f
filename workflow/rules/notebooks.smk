"""Tables and figures: one notebook each, executed by papermill on the measurements of the other stages."""

use_own_environment()


wildcard_constraints:
    figure=either(FIGURES),
    table=either(name for name in NOTEBOOKS if name not in FIGURES),


rule figure:
    input:
        notebook=lambda wildcards: NOTEBOOKS[wildcards.figure].path,
        style="replication/plots/print.mplstyle",
        data=lambda wildcards: NOTEBOOKS[wildcards.figure].reads,
    output:
        notebook=RESULTS / "notebooks" / "{figure}.ipynb",
        picture=RESULTS / "figures" / "{figure}.svg",
        print=RESULTS / "figures" / "{figure}.pdf",
    log:
        LOGS / "notebooks" / "{figure}.log",
    resources:
        **needs("figure"),
    params:
        code=lambda wildcards: notebook_hash(NOTEBOOKS[wildcards.figure].path),
        profile=PROFILE,
        parameters=lambda wildcards: [
            f"--set {name}={value}"
            for name, value in NOTEBOOKS[wildcards.figure].parameters.items()
        ],
        results=RESULTS,
    message:
        "Draw {wildcards.figure}"
    shell:
        "replicate draw {input.notebook} {output.notebook} --set profile={params.profile:q} {params.parameters}"
        " --results {params.results} > {log} 2>&1"


rule table:
    input:
        notebook=lambda wildcards: NOTEBOOKS[wildcards.table].path,
        data=lambda wildcards: NOTEBOOKS[wildcards.table].reads,
    output:
        RESULTS / "notebooks" / "{table}.ipynb",
    log:
        LOGS / "notebooks" / "{table}.log",
    resources:
        **needs("table"),
    params:
        code=lambda wildcards: notebook_hash(NOTEBOOKS[wildcards.table].path),
        profile=PROFILE,
        results=RESULTS,
    message:
        "Tabulate {wildcards.table}"
    shell:
        "replicate draw {input.notebook} {output} --set profile={params.profile:q} --results {params.results} > {log} 2>&1"


# Targets for single notebooks, such as `snakemake fig04`.
for alias, name in short_names(NOTEBOOKS).items():

    rule:
        name:
            alias
        input:
            RESULTS / "notebooks" / f"{name}.ipynb",
        message:
            f"Finish {name}"
