"""Image captioning: pictures, a model with each kind of attention, and their captions of the test images."""

CAPTIONING = RUN.captioning
CAPTION_FILES = Captioning(RESULTS / "captioning")
DRAWN = CAPTIONING.source.source == "scenes"
REGIONS = region_features(RUN)
CAPTIONERS = [
    CAPTION_FILES.model(model, seed)
    for model in members(CAPTIONING.models)
    for seed in CAPTIONING.seeds
]


wildcard_constraints:
    captioner=either(members(CAPTIONING.models)),


rule pictures:
    input:
        text=files_of(CAPTIONING.source, ()),
    output:
        *([REGIONS] if DRAWN else []),
        CAPTION_FILES.pictures("train"),
        CAPTION_FILES.pictures("test"),
        CAPTION_FILES.summary,
    log:
        LOGS / "captioning" / "pictures.log",
    resources:
        **needs("pictures"),
    params:
        code=closure_hash("pictures"),
        config=CONFIGURATION,
        settings=picked(CAPTIONING, "source"),
        content=lambda _: content_of(files_of(CAPTIONING.source, ())),
    message:
        "Prepare pictures with captions"
    shell:
        "replicate pictures --config {params.config} > {log} 2>&1"


rule train_captioner:
    input:
        train=CAPTION_FILES.pictures("train"),
        regions=REGIONS,
    output:
        [
            CAPTION_FILES.model("{captioner}", "{seed}") / name
            for name in (*TRANSLATOR_FILES, "config.json", "vocabulary.json")
        ],
    log:
        LOGS / "captioning" / "train_{captioner}_seed{seed}.log",
    resources:
        **needs("train_captioner"),
    params:
        code=closure_hash("train-captioner"),
        config=CONFIGURATION,
        settings=lambda wildcards: MODELS[
            f"captioning/models/{wildcards.captioner}/seed{wildcards.seed}"
        ].run,
    message:
        "Train the captioner {wildcards.captioner}, seed {wildcards.seed}"
    shell:
        "replicate train-captioner --model {wildcards.captioner} --seed {wildcards.seed} --config {params.config} > {log} 2>&1"


# One process measures all models, because each takes only seconds.
rule measure_captioners:
    input:
        test=CAPTION_FILES.pictures("test"),
        regions=REGIONS,
        models=[
            folder / name
            for folder in CAPTIONERS
            for name in (
                "model.safetensors",
                "config.json",
                "vocabulary.json",
                "training.json",
            )
        ],
    output:
        [
            folder / name
            for folder in CAPTIONERS
            for name in ("measured.csv", "captions.parquet", "attention.parquet")
        ],
    log:
        LOGS / "captioning" / "measure.log",
    resources:
        **needs("measure_captioners"),
    params:
        code=closure_hash("measure-captioners"),
        config=CONFIGURATION,
        settings=picked(CAPTIONING, "decoding", "shown"),
    message:
        "Caption the test images with every model"
    shell:
        "replicate measure-captioners --config {params.config} > {log} 2>&1"
