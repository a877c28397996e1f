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
        measured=f"{CHARACTERS}/models/{{model}}/seed{{seed}}/measured.csv",
        segments=f"{CHARACTERS}/models/{{model}}/seed{{seed}}/segments.parquet",
        summary=f"{CHARACTERS}/models/{{model}}/seed{{seed}}/training.json",
    log:
        f"{CHAR_LM_LOGS}/train_{{model}}_seed{{seed}}.log",
    resources:
        gpu=1,
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


rule character_baselines:
    input:
        code=closure("character-baselines"),
        text=rules.characters.output.text,
    output:
        f"{CHARACTERS}/baselines.csv",
    log:
        f"{CHAR_LM_LOGS}/baselines.log",
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
