"""Language models of symbols: character models with a memory, and Sparse Transformers' patterns on text and pixels.

Each section trains models of one size and measures n-gram baselines, with a folder per corpus.
"""

SYMBOLS = Symbols(RESULTS / "{lm}" / "{corpus}")
SYMBOL_LOGS = LOGS / "{lm}" / "{corpus}"


wildcard_constraints:
    lm=either(place.rpartition("/")[0] for place in SYMBOL_PLACES),
    corpus=either(place.rpartition("/")[2] for place in SYMBOL_PLACES),
    model=either(
        name
        for section, _ in SYMBOL_PLACES.values()
        for name in members(section.models)
    ),


rule characters:
    input:
        text=symbol_inputs,
    output:
        [SYMBOLS.text(split) for split in ALL_SPLITS],
        SYMBOLS.summary,
    log:
        SYMBOL_LOGS / "characters.log",
    resources:
        **needs("characters"),
    params:
        code=closure_hash("characters"),
        config=CONFIGURATION,
        settings=lambda wildcards: symbols(wildcards).corpora[wildcards.corpus].given(),
        content=lambda wildcards: content_of(symbol_inputs(wildcards)),
    message:
        "Prepare the text {wildcards.corpus}"
    shell:
        "replicate characters {wildcards.lm}/{wildcards.corpus} --config {params.config} > {log} 2>&1"


rule train_characters:
    input:
        text=[SYMBOLS.text(split) for split in ALL_SPLITS],
    output:
        [
            SYMBOLS.model("{model}", "{seed}") / name
            for name in ("model.safetensors", "log.csv", "training.json")
        ],
    log:
        SYMBOL_LOGS / "train_{model}_seed{seed}.log",
    resources:
        **needs("train_characters"),
    params:
        code=closure_hash("train-characters"),
        config=CONFIGURATION,
        settings=lambda wildcards: MODELS[
            f"{wildcards.lm}/{wildcards.corpus}/models/{wildcards.model}/seed{wildcards.seed}"
        ].run,
    message:
        "Train {wildcards.model} on {wildcards.corpus}, seed {wildcards.seed}"
    shell:
        "replicate train-characters {wildcards.lm}/{wildcards.corpus} --model {wildcards.model} --seed {wildcards.seed}"
        " --config {params.config} > {log} 2>&1"


for place, (section, files) in SYMBOL_PLACES.items():
    name = "_".join(Path(place).parts).replace("-", "_")
    folders = [
        files.model(model, seed)
        for model in members(section.models)
        for seed in section.seeds
    ]

    # One process measures all models of a corpus, because each takes only a second.
    rule:
        name:
            f"measure_characters_{name}"
        input:
            text=[files.text(split) for split in ALL_SPLITS],
            models=[folder / "model.safetensors" for folder in folders],
            summaries=[folder / "training.json" for folder in folders],
        output:
            [
                folder / table
                for folder in folders
                for table in ("measured.csv", "segments.parquet")
            ],
        log:
            LOGS / place / "measure.log",
        resources:
            **needs("measure_characters"),
        params:
            code=closure_hash("measure-characters"),
            config=CONFIGURATION,
            place=place,
        message:
            f"Evaluate the models of {place}"
        shell:
            "replicate measure-characters {params.place} --config {params.config} > {log} 2>&1"

    if not place.startswith("patterns/"):
        continue
    name = name.removeprefix("patterns_")
    dense = [files.model("dense", seed) for seed in section.seeds]

    # Measures how much of the dense heads' attention falls on each part of the factorised patterns.
    rule:
        name:
            f"attention_parts_{name}"
        input:
            text=[files.text(split) for split in ("train", "test")],
            models=[folder / "model.safetensors" for folder in dense],
            summaries=[folder / "training.json" for folder in dense],
        output:
            files.parts,
        log:
            LOGS / place / "parts.log",
        resources:
            **needs("attention_parts"),
        params:
            code=closure_hash("attention-parts"),
            config=CONFIGURATION,
            stride=section.models.dense.width,
            place=place,
        message:
            f"Measure where dense heads attend on {place}"
        shell:
            "replicate attention-parts {params.place} --config {params.config} > {log} 2>&1"

    rule:
        name:
            f"time_steps_{name}"
        input:
            text=files.text("train"),
            models=[
                files.model(model, section.seeds[0]) / "model.safetensors"
                for model in members(section.models)
            ],
        output:
            files.steps,
        log:
            LOGS / place / "steps.log",
        # Taking all cores keeps other jobs from disturbing the timings.
        threads: CORES
        resources:
            **needs("time_steps"),
        params:
            code=closure_hash("time-steps"),
            config=CONFIGURATION,
            settings=picked(section, "timed_steps"),
            place=place,
        message:
            f"Time training steps on {place}"
        shell:
            "replicate time-steps {params.place} --config {params.config} > {log} 2>&1"


rule character_baselines:
    input:
        text=[SYMBOLS.text(split) for split in ALL_SPLITS],
    output:
        SYMBOLS.baselines,
    log:
        SYMBOL_LOGS / "baselines.log",
    resources:
        **needs("character_baselines"),
    params:
        code=closure_hash("character-baselines"),
        config=CONFIGURATION,
    message:
        "Measure the n-gram baselines of {wildcards.corpus}"
    shell:
        "replicate character-baselines {wildcards.lm}/{wildcards.corpus} --config {params.config} > {log} 2>&1"
