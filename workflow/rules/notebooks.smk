"""Every table and figure is a notebook, run by papermill on what the other stages have measured."""

# What each notebook reads. Those in FIGURES draw one figure, named as they are.
# The patterns of positions need nothing that was measured.
FIGURES = {
    "factorised/fig03_strided": [],
    "factorised/fig05_fixed": [],
    "factorised/reach": [],
}
TABLES, MEASURED = {}, []
if "masked_lm" in config:
    SWEEPS = measured("masked_lm", "sweep/seed{seed}.parquet")
    REPLACED = measured("masked_lm", "replaced/seed{seed}.csv")
    COREFERENCE = [f"{MASKED_LM}/coreference.csv"]
    TAGS = [f"{MASKED_LM}/tags.csv"]
    GRAPHS = measured("masked_lm", "graphs/{split}/layer{layer}.safetensors")
    TOKENS = measured("masked_lm", "tokens/{split}.safetensors")
    STUDENTS = [
        *measured("masked_lm", "projections/seed{seed}"),
        *measured("masked_lm", "centroids/seed{seed}"),
    ]
    PERPLEXITY = [f"{MASKED_LM}/perplexity.csv", f"{MASKED_LM}/model/training.json"]
    FIGURES |= {
        "00_patterns": STUDENTS + GRAPHS,
        "extremely_sparse/fig01_selection": STUDENTS + GRAPHS + TOKENS,
        "extremely_sparse/fig02_pipeline": STUDENTS + GRAPHS + TOKENS,
        "extremely_sparse/fig03_forms": STUDENTS + GRAPHS + TOKENS,
        "sparsefinder/fig01_method": STUDENTS + GRAPHS + TOKENS,
        "sparsefinder/fig04_tradeoff": SWEEPS + REPLACED,
        "sparsefinder/fig05_coreference": STUDENTS
        + GRAPHS
        + TOKENS
        + COREFERENCE
        + SWEEPS,
        "sparsefinder/fig06_parts_of_speech": TAGS,
        "sparsefinder/fig10_heads": SWEEPS,
    }
    TABLES |= {"sparsefinder/tables_masked_lm": SWEEPS + GRAPHS + PERPLEXITY}
    MEASURED += [*SWEEPS, *REPLACED, *COREFERENCE, *TAGS]
    if "blocks" in config["masked_lm"]:
        BLOCK_TABLES = expand(
            [f"{SIZE}/evaluated/seed{{seed}}.csv", f"{SIZE}/timed.csv"],
            size=BLOCKS["sizes"],
            seed=SEEDS,
        )
        FIGURES |= {
            "sparsefinder/fig07_efficient": BLOCK_TABLES,
            "sparsefinder/fig13_efficient_blocks": BLOCK_TABLES,
        }
        MEASURED += BLOCK_TABLES
if PAIRS:
    MT_MEASURED = {
        pair: [
            *measured(f"translation/{pair}", "sweep/seed{seed}.parquet"),
            *measured(f"translation/{pair}", "replaced/seed{seed}.csv"),
            f"{TRANSLATION}/{pair}/bleu.csv",
        ]
        for pair in PAIRS
    }
    # Which pairs there are, a notebook sees from what was measured: so each one waits for all of them.
    EVERY_PAIR = [path for paths in MT_MEASURED.values() for path in paths]
    FIGURES |= {
        "sparsefinder/fig02_translation": EVERY_PAIR,
        "sparsefinder/fig03_maps": EVERY_PAIR,
        "sparsefinder/fig08_heads": EVERY_PAIR,
        "sparsefinder/fig09_heads": EVERY_PAIR,
        "sparsefinder/fig11_maps": EVERY_PAIR,
        "sparsefinder/fig12_maps": EVERY_PAIR,
    }
    TABLES |= {"sparsefinder/tables_translation": EVERY_PAIR}
    MEASURED += EVERY_PAIR
if "char_lm" in config:
    CHARACTER_LOGS, CHARACTER_TABLES = (
        expand(
            f"{CHARACTERS}/models/{{model}}/seed{{seed}}/{name}.csv",
            corpus=CHAR_LM["corpora"],
            model=CHAR_LM["models"],
            seed=CHAR_LM["seeds"],
        )
        for name in ("log", "measured")
    )
    TEXTS = expand(
        [f"{CHARACTERS}/baselines.csv", f"{CHARACTERS}/text/corpus.json"],
        corpus=CHAR_LM["corpora"],
    )
    FIGURES |= {"extremely_sparse/table4_spans": CHARACTER_LOGS}
    TABLES |= {
        "extremely_sparse/table3_characters": CHARACTER_TABLES + TEXTS,
        "explicit_sparse/table23_characters": CHARACTER_TABLES,
    }
    MEASURED += CHARACTER_LOGS + CHARACTER_TABLES
if "forms" in config:
    MEASURED += FORM_MEASURED
    BY_UNIT = {
        unit: [path for path in FORM_MEASURED if f"/forms/{unit}/" in path]
        for unit in FORMS
    }
    if "sentences" in FORMS:
        FIGURES |= {
            "explicit_sparse/fig27_budget": BY_UNIT["sentences"],
            "explicit_sparse/fig33_maps": BY_UNIT["sentences"],
        }
        TABLES |= {
            "explicit_sparse/tables_translation": BY_UNIT["sentences"],
            "extremely_sparse/table1_sentences": BY_UNIT["sentences"],
        }
    if "documents" in FORMS:
        TABLES |= {"extremely_sparse/table2_documents": BY_UNIT["documents"]}
if "scaling" in config:
    FIGURES |= {"sparsefinder/scaling": [f"{RESULTS}/scaling.csv"]}
if "normalizer_speed" in config:
    SPEED_MEASURED = [SPEED_TABLE, f"{SPEED_AT}/speed.json"]
    TABLES |= {"explicit_sparse/table25_speed": SPEED_MEASURED}
    MEASURED += [SPEED_TABLE]
TABLES |= {"claims": [f"{RESULTS}/claims.csv"]}
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
    conda:
        "../../environment.yml"
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
    conda:
        "../../environment.yml"
    params:
        profile=PROFILE,
    shell:
        "papermill --no-progress-bar {input.notebook} {output} -p profile {params.profile} 2>&1 | tee {log}"
