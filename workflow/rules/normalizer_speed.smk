"""Speed, BLEU and attended keys of one translator with each normaliser (Explicit Sparse Transformer, Table 25)."""

SPEED = config["normalizer_speed"]
SPEED_AT = f"{RESULTS}/normalizer_speed"
SPEED_LOGS = f"{RESULTS}/logs/normalizer_speed"
SPEED_FROM, SPEED_TO = next(iter(SPEED["corpus"])).split("-")
SPEED_TABLE = f"{SPEED_AT}/speed.csv"
# Folders of the models: whose implementation, and which normaliser.
CONTENDERS = [
    "torch/softmax",
    "sparselib/topk",
    *(
        f"{whose}/{name}"
        for name in ("sparsemax", "entmax15", "entmax_alpha")
        for whose in ("sparselib", "entmax")
    ),
]
SPEED_MODELS = [
    f"{SPEED_AT}/models/{contender}/model.safetensors" for contender in CONTENDERS
]


rule speed_corpus:
    input:
        code=closure("parallel-corpus"),
    output:
        train=multiext(f"{SPEED_AT}/corpus/train", f".{SPEED_FROM}", f".{SPEED_TO}"),
        valid=multiext(f"{SPEED_AT}/corpus/valid", f".{SPEED_FROM}", f".{SPEED_TO}"),
        test=multiext(f"{SPEED_AT}/corpus/test", f".{SPEED_FROM}", f".{SPEED_TO}"),
    log:
        f"{SPEED_LOGS}/corpus.log",
    resources:
        **needs("speed_corpus"),
    params:
        corpus=json.dumps(next(iter(SPEED["corpus"].values()))),
        languages=f"--language {SPEED_FROM} --language {SPEED_TO}",
    message:
        "Write or read the sentences that normalisers are timed on"
    shell:
        "replicate parallel-corpus --source {params.corpus:q} --split train --split valid --split test {params.languages}"
        " --output $(dirname {output.train[0]}) > {log} 2>&1"


rule speed_binarize:
    input:
        code=closure("binarize"),
        corpus=rules.speed_corpus.output,
    output:
        dictionary=f"{SPEED_AT}/data/dict.{SPEED_TO}.txt",
        test=f"{SPEED_AT}/data/test.{SPEED_FROM}-{SPEED_TO}.{SPEED_TO}.bin",
    log:
        f"{SPEED_LOGS}/binarize.log",
    resources:
        **needs("speed_binarize"),
    params:
        pair=f"--from {SPEED_FROM} --to {SPEED_TO}",
        words=SPEED["words"],
        merges=SPEED["merges"],
    message:
        "Cut the sentences that normalisers are timed on into subwords"
    shell:
        "replicate binarize --corpus $(dirname {input.corpus[0]}) {params.pair} --split train --split valid --split test"
        " --words {params.words} --merges {params.merges} --output $(dirname {output.dictionary}) > {log} 2>&1"


rule train_normalizers:
    input:
        code=closure("train-normalizers"),
        data=rules.speed_binarize.output,
    output:
        models=expand(
            f"{SPEED_AT}/models/{{contender}}/{{file}}",
            contender=CONTENDERS,
            file=TRANSLATOR_FILES,
        ),
    log:
        f"{SPEED_LOGS}/train.log",
    resources:
        **needs("train_normalizers"),
    params:
        pair=f"--from {SPEED_FROM} --to {SPEED_TO}",
        architecture=json.dumps(SPEED["architecture"]),
        training=json.dumps(SPEED["training"]),
        top_k=SPEED["top_k"],
        seed=config["seed"],
    message:
        "Train a translator with each normaliser"
    shell:
        "replicate train-normalizers --data $(dirname {input.data[0]}) {params.pair} --architecture {params.architecture:q}"
        " --training {params.training:q} --top-k {params.top_k} --seed {params.seed}"
        " --output $(dirname $(dirname $(dirname {output.models[0]}))) > {log} 2>&1"


rule normalizer_speed:
    input:
        code=closure("normalizer-speed"),
        data=rules.speed_binarize.output,
        models=SPEED_MODELS,
        references=f"{SPEED_AT}/corpus/test.{SPEED_TO}",
    output:
        table=SPEED_TABLE,
        sentences=f"{SPEED_AT}/sentences.parquet",
        run=f"{SPEED_AT}/speed.json",
    log:
        f"{SPEED_LOGS}/speed.log",
    # All of them, and so nothing runs beside what is timed.
    threads: CORES
    resources:
        **needs("normalizer_speed"),
    params:
        words=SPEED["words"],
        settings=json.dumps({key: SPEED[key] for key in ("repeats", "beam", "batch")}),
    message:
        "Time a translator with each normaliser"
    shell:
        "replicate normalizer-speed --data $(dirname {input.data[0]}) --models $(dirname $(dirname $(dirname {input.models[0]})))"
        " --references {input.references} --words {params.words} --settings {params.settings:q} --output {output.table} > {log} 2>&1"


for contender in CONTENDERS:
    MODELS[f"normalizer_speed/models/{contender}"] = {
        "stage": "train-normalizers",
        "run": {key: SPEED[key] for key in ("architecture", "training", "top_k")}
        | {"seed": config["seed"]},
        "text": pieces(f"{SPEED_AT}/data", (SPEED_FROM, SPEED_TO)),
        "made_from": f"{SPEED_AT}/data/dict.{SPEED_TO}.txt",
        "measured": [],
    }

TABLES["explicit_sparse/table25_speed"] = [SPEED_TABLE, f"{SPEED_AT}/speed.json"]
MEASURED += [SPEED_TABLE]
