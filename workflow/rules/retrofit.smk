"""A model made sparse that was not trained for it: today's selection rules side by side, and each head tuned to a recall."""

RETROFIT = f"{RESULTS}/retrofit"
RETROFITTED = config["retrofit"]
OWN_MODEL = RETROFITTED["model"] == "masked_lm"
# The masked language model of this run comes with its tokenizer; another model brings its own.
RETROFIT_TOKENIZER = f"{MASKED_LM if OWN_MODEL else RETROFIT}/tokenizer/tokenizer.json"
RETROFIT_MODEL = [f"{MASKED_LM}/model/model.safetensors"] if OWN_MODEL else []
TUNED = expand(
    f"{RETROFIT}/sparsified/recall{{recall}}/measured.parquet",
    recall=RETROFITTED["recalls"],
)


rule retrofit_corpus:
    input:
        code=closure("corpus"),
    output:
        train=f"{RETROFIT}/corpus/train.parquet",
        valid=f"{RETROFIT}/corpus/valid.parquet",
    log:
        f"{RESULTS}/logs/retrofit/corpus.log",
    priority: 1
    resources:
        **needs("retrofit_corpus"),
    params:
        source=json.dumps(RETROFITTED["corpus"]),
        splits=" ".join(f"--split {split}" for split in SPLITS),
    message:
        "Write or read the corpus of the model that is made sparse"
    shell:
        "replicate corpus --source {params.source:q} {params.splits} --output $(dirname {output.train}) > {log} 2>&1"


rule retrofit_tokenize:
    input:
        code=closure("tokenize"),
        corpus=[rules.retrofit_corpus.output.train, rules.retrofit_corpus.output.valid],
        tokenizer=[RETROFIT_TOKENIZER] if OWN_MODEL else [],
    output:
        train=f"{RETROFIT}/tokens/train.safetensors",
        valid=f"{RETROFIT}/tokens/valid.safetensors",
        tokenizer=[] if OWN_MODEL else [RETROFIT_TOKENIZER],
    log:
        f"{RESULTS}/logs/retrofit/tokenize.log",
    priority: 1
    resources:
        **needs("retrofit_tokenize"),
    params:
        length=RETROFITTED["length"],
        tokenizer=lambda wildcards, input, output: Path(
            (input if OWN_MODEL else output).tokenizer[0]
        ).parent,
        pretrained="" if OWN_MODEL else f"--pretrained {RETROFITTED['model']}",
    message:
        "Cut the corpus of the model that is made sparse into subwords"
    shell:
        "replicate tokenize $(printf ' --corpus %s' {input.corpus:q}) --length {params.length}"
        " --output $(dirname {output.train}) --tokenizer {params.tokenizer} {params.pretrained} > {log} 2>&1"


rule measure_rules:
    input:
        code=closure("measure-rules"),
        model=RETROFIT_MODEL,
        train=rules.retrofit_tokenize.output.train,
        valid=rules.retrofit_tokenize.output.valid,
    output:
        table=f"{RETROFIT}/rules.parquet",
        learning=f"{RETROFIT}/learning.csv",
    log:
        f"{RESULTS}/logs/retrofit/rules.log",
    priority: 1
    resources:
        **needs("measure_rules"),
    params:
        model=lambda wildcards, input: (
            Path(input.model[0]).parent if OWN_MODEL else RETROFITTED["model"]
        ),
        settings=json.dumps(RETROFITTED),
        seeds=as_seeds(SEEDS),
    message:
        "Measure rules that select what a model attends to"
    shell:
        "replicate measure-rules --model {params.model:q} --train {input.train} --valid {input.valid}"
        " --settings {params.settings:q} {params.seeds} --output {output.table} --learning {output.learning} > {log} 2>&1"


rule sparsify:
    input:
        code=closure("sparsify"),
        model=RETROFIT_MODEL,
        train=rules.retrofit_tokenize.output.train,
        valid=rules.retrofit_tokenize.output.valid,
    output:
        table=f"{RETROFIT}/sparsified/recall{{recall}}/measured.parquet",
        heads=f"{RETROFIT}/sparsified/recall{{recall}}/sparsified.json",
        tensors=f"{RETROFIT}/sparsified/recall{{recall}}/sparsified.safetensors",
    log:
        f"{RESULTS}/logs/retrofit/sparsify/recall{{recall}}.log",
    priority: 1
    resources:
        **needs("sparsify"),
    params:
        model=lambda wildcards, input: (
            Path(input.model[0]).parent if OWN_MODEL else RETROFITTED["model"]
        ),
        settings=json.dumps(RETROFITTED),
        seed=SEEDS[0],
    message:
        "Tune every head to a recall of {wildcards.recall}"
    shell:
        "replicate sparsify --model {params.model:q} --train {input.train} --valid {input.valid} --settings {params.settings:q}"
        " --recall {wildcards.recall} --seed {params.seed} --output $(dirname {output.table}) > {log} 2>&1"


RULES = [rules.measure_rules.output.table]
FIGURES["retrofit/01_recall"] = RULES + TUNED
FIGURES["retrofit/02_drift"] = RULES + TUNED
TABLES["retrofit/03_heads"] = RULES + TUNED + [rules.measure_rules.output.learning]
MEASURED += RULES + TUNED
