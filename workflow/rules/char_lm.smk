"""Models of symbols, one after another: of characters with a memory, and of the patterns of Sparse Transformers on text and on
pixels. In each, models of one size, and n-grams that they must beat; a folder for every corpus.
"""

CHARACTERS = f"{RESULTS}/{{lm}}/{{corpus}}"
CHAR_LM_LOGS = f"{RESULTS}/logs/{{lm}}/{{corpus}}"


wildcard_constraints:
    lm="|".join(SYMBOL_LMS),
    corpus="|".join(
        {name: None for lm in SYMBOL_LMS.values() for name in lm["corpora"]}
    ),
    model="|".join({name: None for lm in SYMBOL_LMS.values() for name in lm["models"]}),


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
        source=lambda wildcards: json.dumps(
            SYMBOL_LMS[wildcards.lm]["corpora"][wildcards.corpus]
        ),
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
            SYMBOL_LMS[wildcards.lm]["sizes"]
            | SYMBOL_LMS[wildcards.lm]["models"][wildcards.model]
        ),
        recipe=lambda wildcards: json.dumps(SYMBOL_LMS[wildcards.lm]["recipe"]),
        rows=lambda wildcards: json.dumps(SYMBOL_LMS[wildcards.lm]["rows"]),
    message:
        "Train {wildcards.model} on {wildcards.corpus}, seed {wildcards.seed}"
    shell:
        "replicate train-characters --text $(dirname {input.text[0]}) --settings {params.settings:q}"
        " --recipe {params.recipe:q} --rows {params.rows:q} --seed {wildcards.seed}"
        " --output $(dirname {output.model}) > {log} 2>&1"


for lm, section in SYMBOL_LMS.items():
    for corpus, model, seed in product(
        section["corpora"], section["models"], section["seeds"]
    ):
        at = f"{RESULTS}/{lm}/{corpus}"
        MODELS[f"{lm}/{corpus}/models/{model}/seed{seed}"] = {
            "stage": "train-characters",
            "run": {
                "settings": section["sizes"] | section["models"][model],
                "recipe": section["recipe"],
                "rows": section["rows"],
                "seed": seed,
            },
            "text": [f"{at}/text/train.txt", f"{at}/text/valid.txt"],
            "made_from": f"{at}/text/corpus.json",
            "measured": [f"{at}/models/{model}/seed{seed}/measured.csv"],
        }

# All models of a corpus in one process: each takes a second.
for lm, corpus in [
    (lm, name) for lm in SYMBOL_LMS for name in SYMBOL_LMS[lm]["corpora"]
]:
    at = f"{RESULTS}/{lm}/{corpus}"
    models = [
        f"{at}/models/{model}/seed{seed}"
        for model in SYMBOL_LMS[lm]["models"]
        for seed in SYMBOL_LMS[lm]["seeds"]
    ]

    rule:
        name:
            f"measure_characters_{'_'.join(Path(lm).parts)}_{corpus.replace('-', '_')}"
        input:
            code=closure("measure-characters"),
            text=expand(f"{at}/text/{{split}}.txt", split=["train", "valid", "test"]),
            models=expand("{model}/model.safetensors", model=models),
            summaries=expand("{model}/training.json", model=models),
        output:
            expand(
                "{model}/{table}",
                model=models,
                table=["measured.csv", "segments.parquet"],
            ),
        log:
            f"{RESULTS}/logs/{lm}/{corpus}/measure.log",
        resources:
            **needs("measure_characters"),
        message:
            f"Evaluate the models of {corpus}"
        shell:
            "replicate measure-characters --text $(dirname {input.text[0]}) $(printf ' --model %s' $(dirname {input.models})) > {log} 2>&1"


# Where the heads of full attention look, in terms of the patterns that were put in its place.
for kind, section in config.get("patterns", {}).items():
    for corpus in section["corpora"]:
        at = f"{RESULTS}/patterns/{kind}/{corpus}"
        dense = [f"{at}/models/dense/seed{seed}" for seed in section["seeds"]]

        rule:
            name:
                f"attention_parts_{kind}_{corpus.replace('-', '_')}"
            input:
                code=closure("attention-parts"),
                text=expand(f"{at}/text/{{split}}.txt", split=["train", "test"]),
                models=expand("{model}/model.safetensors", model=dense),
                summaries=expand("{model}/training.json", model=dense),
            output:
                f"{at}/parts.csv",
            log:
                f"{RESULTS}/logs/patterns/{kind}/{corpus}/parts.log",
            resources:
                **needs("attention_parts"),
            params:
                stride=section["models"]["dense"]["width"],
            message:
                f"See where dense heads look on {corpus}"
            shell:
                "replicate attention-parts --text $(dirname {input.text[0]}) $(printf ' --model %s' $(dirname {input.models}))"
                " --stride {params.stride} --output {output} > {log} 2>&1"

        rule:
            name:
                f"time_steps_{kind}_{corpus.replace('-', '_')}"
            input:
                code=closure("time-steps"),
                text=f"{at}/text/train.txt",
                models=[
                    f"{at}/models/{model}/seed{section['seeds'][0]}/model.safetensors"
                    for model in section["models"]
                ],
            output:
                f"{at}/steps.csv",
            log:
                f"{RESULTS}/logs/patterns/{kind}/{corpus}/steps.log",
            # All of them, and so nothing runs beside what is timed.
            threads: CORES
            resources:
                **needs("time_steps"),
            params:
                repeats=section["timed_steps"],
            message:
                f"Time training steps on {corpus}"
            shell:
                "replicate time-steps --text $(dirname {input.text}) $(printf ' --model %s' $(dirname {input.models}))"
                " --repeats {params.repeats} --output {output} > {log} 2>&1"


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


if "char_lm" in config:
    TEXTS = expand(
        [
            f"{RESULTS}/char_lm/{{corpus}}/baselines.csv",
            f"{RESULTS}/char_lm/{{corpus}}/text/corpus.json",
        ],
        corpus=config["char_lm"]["corpora"],
    )
    FIGURES["extremely_sparse/table4_spans"] = [
        *of_models("char_lm", "log.csv"),
        "config/published/extremely_sparse_table4.csv",
    ]
    TABLES["extremely_sparse/table3_characters"] = [
        *of_models("char_lm", "measured.csv"),
        *TEXTS,
        "config/published/extremely_sparse_table3.csv",
    ]
    TABLES["explicit_sparse/table23_characters"] = [
        *of_models("char_lm", "measured.csv"),
        "config/published/extremely_sparse_table3.csv",
    ]
for lm in SYMBOL_LMS:
    MEASURED += of_models(lm, "log.csv", "measured.csv", "segments.parquet")
if "patterns" in config:
    PARTS = [
        f"{RESULTS}/patterns/{kind}/{corpus}/{table}.csv"
        for kind, section in config["patterns"].items()
        for corpus in section["corpora"]
        for table in ("parts", "steps")
    ]
    FIGURES["factorised/trained"] = [
        *PARTS,
        *[
            path
            for lm in config["patterns"]
            for path in of_models(f"patterns/{lm}", "measured.csv")
        ],
    ]
    MEASURED += PARTS
