"""Every table and figure is a notebook, run by papermill on what the other stages have measured."""

SWEEPS = expand(
    f"{MASKED_LM}/sweep/seed{{seed}}/layer{{layer}}.parquet", seed=SEEDS, layer=LAYERS
)
REPLACED = expand(f"{MASKED_LM}/replaced/seed{{seed}}.csv", seed=SEEDS)
COREFERENCE = expand(f"{MASKED_LM}/coreference/layer{{layer}}.csv", layer=LAYERS)
TAGS = expand(f"{MASKED_LM}/tags/layer{{layer}}.csv", layer=LAYERS)
STUDENTS = expand(
    f"{MASKED_LM}/{{kind}}/seed{SEEDS[0]}/layer{{layer}}.safetensors",
    kind=["projections", "centroids"],
    layer=LAYERS,
)
GRAPHS = expand(
    f"{MASKED_LM}/graphs/{{split}}/layer{{layer}}.safetensors",
    split=SPLITS,
    layer=LAYERS,
)
TOKENS = expand(f"{MASKED_LM}/tokens/{{split}}.safetensors", split=SPLITS)

# What each notebook reads. Those in FIGURES draw one figure, named as they are.
FIGURES = {
    "00_patterns": STUDENTS + GRAPHS,
    "sparsefinder/fig01_method": STUDENTS + GRAPHS + TOKENS,
    "sparsefinder/fig04_tradeoff": SWEEPS + REPLACED,
    "sparsefinder/fig05_coreference": STUDENTS + GRAPHS + TOKENS + COREFERENCE + SWEEPS,
    "sparsefinder/fig06_parts_of_speech": TAGS,
    "sparsefinder/fig10_heads": SWEEPS,
}
TABLES = {
    "sparsefinder/tables_masked_lm": SWEEPS
    + GRAPHS
    + [f"{MASKED_LM}/perplexity.csv", f"{MASKED_LM}/model/training.json"],
    "claims": [f"{RESULTS}/claims.csv"],
}
NOTEBOOKS = expand(f"{RESULTS}/notebooks/{{name}}.ipynb", name=[*FIGURES, *TABLES])


wildcard_constraints:
    figure="|".join(FIGURES),
    table="|".join(TABLES),


rule figure:
    input:
        code=modules("plots", "results", "examples", "paths"),
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
    conda:
        "../../environment.yml"
    params:
        profile=PROFILE,
    shell:
        "papermill --no-progress-bar {input.notebook} {output.notebook} -p profile {params.profile} 2>&1 | tee {log}"


rule table:
    input:
        code=modules("results", "paths"),
        notebook="notebooks/{table}.ipynb",
        data=lambda wildcards: TABLES[wildcards.table],
    output:
        f"{RESULTS}/notebooks/{{table}}.ipynb",
    log:
        f"{RESULTS}/logs/notebooks/{{table}}.log",
    conda:
        "../../environment.yml"
    params:
        profile=PROFILE,
    shell:
        "papermill --no-progress-bar {input.notebook} {output} -p profile {params.profile} 2>&1 | tee {log}"
