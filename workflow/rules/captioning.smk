"""Image captioning: pictures, models of each kind of attention, and what they say of the test images."""

CAPTIONING = f"{RESULTS}/captioning"
CAPTIONERS = [
    f"captioning/models/{model}/seed{seed}"
    for model, seed in product(
        config["captioning"]["models"], config["captioning"]["seeds"]
    )
]
DRAWN = config["captioning"]["source"]["source"] == "scenes"
# Features of region are drawn with the scenes, or lie where somebody has put them.
REGIONS = (
    f"{CAPTIONING}/pictures/regions.npz"
    if DRAWN
    else config["captioning"]["source"]["regions"]
)


wildcard_constraints:
    captioner="|".join(config["captioning"]["models"]),


rule pictures:
    input:
        code=closure("pictures"),
    output:
        *([REGIONS] if DRAWN else []),
        train=f"{CAPTIONING}/pictures/train.jsonl",
        test=f"{CAPTIONING}/pictures/test.jsonl",
        summary=f"{CAPTIONING}/pictures/pictures.json",
    log:
        f"{RESULTS}/logs/captioning/pictures.log",
    resources:
        **needs("pictures"),
    params:
        source=json.dumps(config["captioning"]["source"]),
    message:
        "Draw or read pictures with captions"
    shell:
        "replicate pictures --source {params.source:q} --output $(dirname {output.summary}) > {log} 2>&1"


rule train_captioner:
    input:
        code=closure("train-captioner"),
        train=rules.pictures.output.train,
        regions=REGIONS,
    output:
        model=f"{CAPTIONING}/models/{{captioner}}/seed{{seed}}/model.safetensors",
        config=f"{CAPTIONING}/models/{{captioner}}/seed{{seed}}/config.json",
        vocabulary=f"{CAPTIONING}/models/{{captioner}}/seed{{seed}}/vocabulary.json",
        log=f"{CAPTIONING}/models/{{captioner}}/seed{{seed}}/training.csv",
        summary=f"{CAPTIONING}/models/{{captioner}}/seed{{seed}}/training.json",
    log:
        f"{RESULTS}/logs/captioning/train_{{captioner}}_seed{{seed}}.log",
    resources:
        **needs("train_captioner"),
    params:
        model=lambda wildcards: json.dumps(
            config["captioning"]["models"][wildcards.captioner]
        ),
        architecture=json.dumps(config["captioning"]["architecture"]),
        limits=json.dumps(config["captioning"]["limits"]),
        training=json.dumps(config["captioning"]["training"]),
    message:
        "Train the captioner {wildcards.captioner}, seed {wildcards.seed}"
    shell:
        "replicate train-captioner --pictures $(dirname {input.train}) --regions {input.regions} --model {params.model:q}"
        " --architecture {params.architecture:q} --limits {params.limits:q} --training {params.training:q} --seed {wildcards.seed}"
        " --output $(dirname {output.model}) > {log} 2>&1"


for model, seed in product(
    config["captioning"]["models"], config["captioning"]["seeds"]
):
    MODELS[f"captioning/models/{model}/seed{seed}"] = {
        "stage": "train-captioner",
        "run": {
            "model": config["captioning"]["models"][model],
            **{
                key: config["captioning"][key]
                for key in ("architecture", "limits", "training")
            },
            "seed": seed,
        },
        "text": [f"{CAPTIONING}/pictures/train.jsonl"],
        "made_from": f"{CAPTIONING}/pictures/train.jsonl",
        "measured": [f"{CAPTIONING}/models/{model}/seed{seed}/measured.csv"],
    }


# All models in one process: each takes seconds.
rule measure_captioners:
    input:
        code=closure("measure-captioners"),
        test=rules.pictures.output.test,
        regions=REGIONS,
        models=expand(
            f"{RESULTS}/{{folder}}/{{file}}",
            folder=CAPTIONERS,
            file=[
                "model.safetensors",
                "config.json",
                "vocabulary.json",
                "training.json",
            ],
        ),
    output:
        expand(
            f"{RESULTS}/{{folder}}/{{file}}",
            folder=CAPTIONERS,
            file=["measured.csv", "captions.parquet", "attention.parquet"],
        ),
    log:
        f"{RESULTS}/logs/captioning/measure.log",
    resources:
        **needs("measure_captioners"),
    params:
        models=" ".join(f"--model {RESULTS}/{folder}" for folder in CAPTIONERS),
        decoding=json.dumps(config["captioning"]["decoding"]),
        shown=config["captioning"]["shown"],
    message:
        "Describe the test images with every captioner"
    shell:
        "replicate measure-captioners --pictures $(dirname {input.test}) --regions {input.regions} {params.models}"
        " --decoding {params.decoding:q} --shown {params.shown} > {log} 2>&1"


FIGURES["explicit_sparse/table17_captioning"] = [
    *rules.measure_captioners.output,
    rules.pictures.output.test,
    *([REGIONS] if DRAWN else []),
    "config/published/explicit_sparse_table17.csv",
]
MEASURED += rules.measure_captioners.output
