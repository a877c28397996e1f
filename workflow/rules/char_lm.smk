"""Character language modelling: text, models of one size, and n-grams that they must beat; a folder for every corpus."""

CHAR_LM = config["char_lm"]
CHARACTERS = f"{RESULTS}/char_lm/{{corpus}}"
CHAR_LM_LOGS = f"{RESULTS}/logs/char_lm/{{corpus}}"


wildcard_constraints:
    corpus="|".join(CHAR_LM["corpora"]),
    model="|".join(CHAR_LM["models"]),


rule characters:
    input:
        code=closure("characters"),
    output:
        text=expand(
            f"{CHARACTERS}/text/{{split}}.txt",
            split=["train", "valid", "test"],
            allow_missing=True,
        ),
        summary=f"{CHARACTERS}/text/corpus.json",
    log:
        f"{CHAR_LM_LOGS}/characters.log",
    resources:
        **needs("characters"),
    params:
        source=lambda wildcards: json.dumps(CHAR_LM["corpora"][wildcards.corpus]),
    message:
        "Write or read the text {wildcards.corpus}"
    shell:
        "replicate characters --source {params.source:q} --output $(dirname {output.summary}) > {log} 2>&1"


rule train_characters:
    input:
        code=closure("train-characters"),
        text=rules.characters.output.text,
    output:
        model=f"{CHARACTERS}/models/{{model}}/seed{{seed}}/model.safetensors",
        log=f"{CHARACTERS}/models/{{model}}/seed{{seed}}/log.csv",
        summary=f"{CHARACTERS}/models/{{model}}/seed{{seed}}/training.json",
    log:
        f"{CHAR_LM_LOGS}/train_{{model}}_seed{{seed}}.log",
    resources:
        **needs("train_characters"),
    params:
        # What a model says of itself goes before what all models have in common.
        settings=lambda wildcards: json.dumps(
            CHAR_LM["sizes"] | CHAR_LM["models"][wildcards.model]
        ),
        recipe=json.dumps(CHAR_LM["recipe"]),
        rows=json.dumps(CHAR_LM["rows"]),
    message:
        "Train {wildcards.model} on {wildcards.corpus}, seed {wildcards.seed}"
    shell:
        "replicate train-characters --text $(dirname {input.text[0]}) --settings {params.settings:q}"
        " --recipe {params.recipe:q} --rows {params.rows:q} --seed {wildcards.seed}"
        " --output $(dirname {output.model}) > {log} 2>&1"


for corpus, model, seed in product(
    CHAR_LM["corpora"], CHAR_LM["models"], CHAR_LM["seeds"]
):
    at = f"{RESULTS}/char_lm/{corpus}"
    MODELS[f"char_lm/{corpus}/models/{model}/seed{seed}"] = {
        "stage": "train-characters",
        "run": {
            "settings": CHAR_LM["sizes"] | CHAR_LM["models"][model],
            "recipe": CHAR_LM["recipe"],
            "rows": CHAR_LM["rows"],
            "seed": seed,
        },
        "text": [f"{at}/text/train.txt", f"{at}/text/valid.txt"],
        "made_from": f"{at}/text/corpus.json",
        "measured": [f"{at}/models/{model}/seed{seed}/measured.csv"],
    }


# All models of a corpus in one process: each takes a second.
rule measure_characters:
    input:
        code=closure("measure-characters"),
        text=rules.characters.output.text,
        models=expand(
            f"{CHARACTERS}/models/{{model}}/seed{{seed}}/model.safetensors",
            model=CHAR_LM["models"],
            seed=CHAR_LM["seeds"],
            allow_missing=True,
        ),
        summaries=expand(
            f"{CHARACTERS}/models/{{model}}/seed{{seed}}/training.json",
            model=CHAR_LM["models"],
            seed=CHAR_LM["seeds"],
            allow_missing=True,
        ),
    output:
        expand(
            f"{CHARACTERS}/models/{{model}}/seed{{seed}}/{{table}}",
            model=CHAR_LM["models"],
            seed=CHAR_LM["seeds"],
            table=["measured.csv", "segments.parquet"],
            allow_missing=True,
        ),
    log:
        f"{CHAR_LM_LOGS}/measure.log",
    resources:
        **needs("measure_characters"),
    message:
        "Evaluate the character models of {wildcards.corpus}"
    shell:
        "replicate measure-characters --text $(dirname {input.text[0]}) $(printf ' --model %s' $(dirname {input.models})) > {log} 2>&1"


rule character_baselines:
    input:
        code=closure("character-baselines"),
        text=rules.characters.output.text,
    output:
        f"{CHARACTERS}/baselines.csv",
    log:
        f"{CHAR_LM_LOGS}/baselines.log",
    resources:
        **needs("character_baselines"),
    message:
        "Measure n-grams of {wildcards.corpus}"
    shell:
        "replicate character-baselines --text $(dirname {input.text[0]}) --output {output} > {log} 2>&1"


CHARACTER_LOGS, CHARACTER_TABLES, SEGMENTS = (
    expand(
        f"{CHARACTERS}/models/{{model}}/seed{{seed}}/{name}",
        corpus=CHAR_LM["corpora"],
        model=CHAR_LM["models"],
        seed=CHAR_LM["seeds"],
    )
    for name in ("log.csv", "measured.csv", "segments.parquet")
)
TEXTS = expand(
    [f"{CHARACTERS}/baselines.csv", f"{CHARACTERS}/text/corpus.json"],
    corpus=CHAR_LM["corpora"],
)

FIGURES["extremely_sparse/table4_spans"] = [
    *CHARACTER_LOGS,
    "config/published/extremely_sparse_table4.csv",
]
TABLES["extremely_sparse/table3_characters"] = [
    *CHARACTER_TABLES,
    *TEXTS,
    "config/published/extremely_sparse_table3.csv",
]
TABLES["explicit_sparse/table23_characters"] = [
    *CHARACTER_TABLES,
    "config/published/extremely_sparse_table3.csv",
]
MEASURED += CHARACTER_LOGS + CHARACTER_TABLES + SEGMENTS
