"""Every table and figure is a notebook, run by papermill on what the other stages have measured."""

NOTEBOOKS = expand(f"{RESULTS}/notebooks/{{name}}.ipynb", name=[*FIGURES, *TABLES])


wildcard_constraints:
    figure="|".join(FIGURES),
    table="|".join(TABLES),


rule figure:
    input:
        code=lambda wildcards: notebook_closure(f"notebooks/{wildcards.figure}.ipynb"),
        notebook="notebooks/{figure}.ipynb",
        data=lambda wildcards: FIGURES[wildcards.figure],
    output:
        notebook=f"{RESULTS}/notebooks/{{figure}}.ipynb",
        picture=report(
            f"{RESULTS}/figures/{{figure}}.svg",
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
        print=f"{RESULTS}/figures/{{figure}}.pdf",
    log:
        f"{RESULTS}/logs/notebooks/{{figure}}.log",
    params:
        profile=PROFILE,
    shell:
        "papermill --no-progress-bar {input.notebook} {output.notebook} -p profile {params.profile} 2>&1 | tee {log}"


rule table:
    input:
        code=lambda wildcards: notebook_closure(f"notebooks/{wildcards.table}.ipynb"),
        notebook="notebooks/{table}.ipynb",
        data=lambda wildcards: TABLES[wildcards.table],
    output:
        f"{RESULTS}/notebooks/{{table}}.ipynb",
    log:
        f"{RESULTS}/logs/notebooks/{{table}}.log",
    params:
        profile=PROFILE,
    shell:
        "papermill --no-progress-bar {input.notebook} {output} -p profile {params.profile} 2>&1 | tee {log}"
