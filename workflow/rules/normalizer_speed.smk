"""Speed, BLEU and attended keys of one translator with each normaliser (Explicit Sparse Transformer, Table 25)."""

SPEED_TEXT = PARALLEL_PLACES["normalizer_speed"]
SPEED, SPEED_FILES = SPEED_TEXT.section, SPEED_TEXT.files
SPEED_LOGS = LOGS / "normalizer_speed"
CONTENDER_FOLDERS = [
    SPEED_FILES.models / implementation / normalizer
    for implementation, normalizer in CONTENDERS
]


rule speed_corpus:
    input:
        text=text_of(PARALLEL_PLACES, "normalizer_speed"),
    output:
        [
            SPEED_FILES.corpus(split, language)
            for split in ALL_SPLITS
            for language in SPEED_TEXT.pair
        ],
    log:
        SPEED_LOGS / "corpus.log",
    resources:
        **needs("speed_corpus"),
    params:
        code=closure_hash("parallel-corpus"),
        config=CONFIGURATION,
        settings=lambda _: text_settings(SPEED_TEXT),
    message:
        "Prepare the sentences for timing normalisers"
    shell:
        "replicate parallel-corpus normalizer_speed --config {params.config} > {log} 2>&1"


rule speed_binarize:
    input:
        corpus=rules.speed_corpus.output,
    output:
        directory(SPEED_FILES.data),
    log:
        SPEED_LOGS / "binarize.log",
    resources:
        **needs("speed_binarize"),
    params:
        code=closure_hash("binarize"),
        config=CONFIGURATION,
        settings=picked(SPEED, "words", "merges"),
    message:
        "Tokenize the sentences for timing normalisers"
    shell:
        "replicate binarize normalizer_speed --config {params.config} > {log} 2>&1"


rule train_normalizers:
    input:
        data=rules.speed_binarize.output,
    output:
        [folder / file for folder in CONTENDER_FOLDERS for file in TRANSLATOR_FILES],
    log:
        SPEED_LOGS / "train.log",
    resources:
        **needs("train_normalizers"),
    params:
        code=closure_hash("train-normalizers"),
        config=CONFIGURATION,
        settings=picked(SPEED, "architecture", "training", "top_k"),
        seed=RUN.seed,
    message:
        "Train a translator with each normaliser"
    shell:
        "replicate train-normalizers --config {params.config} > {log} 2>&1"


rule normalizer_speed:
    input:
        data=rules.speed_binarize.output,
        models=[folder / "model.safetensors" for folder in CONTENDER_FOLDERS],
        references=SPEED_FILES.corpus("test", SPEED_TEXT.pair[1]),
    output:
        SPEED_FILES.table,
        SPEED_FILES.sentences,
        SPEED_FILES.details,
    log:
        SPEED_LOGS / "speed.log",
    # Taking all cores keeps other jobs from disturbing the timings.
    threads: CORES
    resources:
        **needs("normalizer_speed"),
    params:
        code=closure_hash("normalizer-speed"),
        config=CONFIGURATION,
        settings=picked(SPEED, "repeats", "beam", "batch"),
    message:
        "Time a translator with each normaliser"
    shell:
        "replicate normalizer-speed --config {params.config} > {log} 2>&1"
