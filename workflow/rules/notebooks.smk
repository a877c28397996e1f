"""Every table and figure is a notebook, run by papermill on what the other stages have measured."""

NOTEBOOKS = expand(f"{RESULTS}/notebooks/{{name}}.ipynb", name=[*FIGURES, *TABLES])
PICTURES = expand(
    f"{RESULTS}/figures/{{figure}}.{{format}}", figure=FIGURES, format=["svg", "pdf"]
)


wildcard_constraints:
    figure="|".join(FIGURES),
    table="|".join(TABLES),


rule figure:
    input:
        code=lambda wildcards: notebook_closure(notebook(wildcards.figure)),
        notebook=lambda wildcards: notebook(wildcards.figure),
        style="replication/plots/print.mplstyle",
        data=lambda wildcards: FIGURES[wildcards.figure],
    output:
        notebook=f"{RESULTS}/notebooks/{{figure}}.ipynb",
        picture=f"{RESULTS}/figures/{{figure}}.svg",
        print=f"{RESULTS}/figures/{{figure}}.pdf",
    log:
        f"{RESULTS}/logs/notebooks/{{figure}}.log",
    resources:
        **needs("figure"),
    params:
        profile=PROFILE,
        told=lambda wildcards: " ".join(
            f"-p {name} {value}"
            for name, value in TOLD.get(wildcards.figure, {}).items()
        ),
    message:
        "Draw {wildcards.figure}"
    shell:
        "papermill --no-progress-bar {input.notebook} {output.notebook} -p profile {params.profile} {params.told} > {log} 2>&1"


rule table:
    input:
        code=lambda wildcards: notebook_closure(notebook(wildcards.table)),
        notebook=lambda wildcards: notebook(wildcards.table),
        data=lambda wildcards: TABLES[wildcards.table],
    output:
        f"{RESULTS}/notebooks/{{table}}.ipynb",
    log:
        f"{RESULTS}/logs/notebooks/{{table}}.log",
    resources:
        **needs("table"),
    params:
        profile=PROFILE,
    message:
        "Tabulate {wildcards.table}"
    shell:
        "papermill --no-progress-bar {input.notebook} {output} -p profile {params.profile} > {log} 2>&1"


# One figure alone: `snakemake fig04`.
for alias, name in short_names([*FIGURES, *TABLES]).items():

    rule:
        name:
            alias
        input:
            f"{RESULTS}/notebooks/{name}.ipynb",
        message:
            f"{name} is drawn"
