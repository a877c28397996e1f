"""Sparsified models without retraining: a comparison of selection rules, and heads tuned to a target recall."""

RETROFIT = RUN.retrofit
RETROFIT_FILES = Retrofit(RESULTS / "retrofit")
RETROFIT_TEXT = TOKEN_PLACES["retrofit"]
# This run's masked language model uses this run's tokenizer; any other model has its own.
OWN_MODEL = RETROFIT.model == "masked_lm"
RETROFIT_MODEL = MaskedLM(RESULTS / "masked_lm").model if OWN_MODEL else []


rule retrofit_corpus:
    input:
        text=text_of(TOKEN_PLACES, "retrofit"),
    output:
        [RETROFIT_FILES.corpus(split) for split in SPLITS],
    log:
        LOGS / "retrofit" / "corpus.log",
    priority: 1
    resources:
        **needs("retrofit_corpus"),
    params:
        code=closure_hash("corpus"),
        config=CONFIGURATION,
        settings=lambda _: text_settings(RETROFIT_TEXT),
    message:
        "Prepare the corpus for sparsifying a model"
    shell:
        "replicate corpus retrofit --config {params.config} > {log} 2>&1"


rule retrofit_tokenize:
    input:
        pretrained=local_model(RETROFIT_TEXT.pretrained),
        corpus=[RETROFIT_FILES.corpus(split) for split in SPLITS],
        tokenizer=tokenizer_files(RETROFIT_TEXT.tokenizer) if OWN_MODEL else [],
    output:
        [RETROFIT_FILES.tokens(split) for split in SPLITS],
        *([] if OWN_MODEL else tokenizer_files(RETROFIT_TEXT.tokenizer)),
    log:
        LOGS / "retrofit" / "tokenize.log",
    priority: 1
    resources:
        **needs("retrofit_tokenize"),
    params:
        code=closure_hash("tokenize"),
        config=CONFIGURATION,
        settings=picked(RETROFIT, "length", "model"),
    message:
        "Tokenize the corpus for sparsifying a model"
    shell:
        "replicate tokenize retrofit --config {params.config} > {log} 2>&1"


rule measure_rules:
    input:
        pretrained=local_model(RETROFIT_TEXT.pretrained),
        model=RETROFIT_MODEL,
        tokens=[RETROFIT_FILES.tokens(split) for split in SPLITS],
    output:
        RETROFIT_FILES.rules,
        RETROFIT_FILES.learning,
    log:
        LOGS / "retrofit" / "rules.log",
    priority: 1
    resources:
        **needs("measure_rules"),
    params:
        code=closure_hash("measure-rules"),
        config=CONFIGURATION,
        settings=RETROFIT.given(),
        seeds=list(SEEDS),
    message:
        "Measure selection rules"
    shell:
        "replicate measure-rules --config {params.config} > {log} 2>&1"


rule sparsify:
    input:
        pretrained=local_model(RETROFIT_TEXT.pretrained),
        model=RETROFIT_MODEL,
        tokens=[RETROFIT_FILES.tokens(split) for split in SPLITS],
    output:
        [
            RETROFIT_FILES.sparsified("{recall}") / name
            for name in (
                "measured.parquet",
                "sparsified.safetensors",
            )
        ],
    log:
        LOGS / "retrofit" / "sparsify" / "recall{recall}.log",
    priority: 1
    resources:
        **needs("sparsify"),
    params:
        code=closure_hash("sparsify"),
        config=CONFIGURATION,
        settings=RETROFIT.given(),
        seed=SEEDS[0],
    message:
        "Tune every head to a recall of {wildcards.recall}"
    shell:
        "replicate sparsify --recall {wildcards.recall} --config {params.config} > {log} 2>&1"
