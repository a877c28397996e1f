"""The masked language model: training, perplexity, its attention graphs, and evaluation under predicted graphs."""

SETTINGS = config["masked_lm"]
MASKED_LM_LAYERS = layers("masked_lm")
# Named here, as rules.train_...output would ask for that rule, and the model may come from a checkpoint.
MODEL = f"{MASKED_LM}/model/model.safetensors"
# Of the cores: a small model gains little from the others, and other jobs do.
HALF = max(1, CORES // 2)


include: "corpus.smk"


rule train_masked_lm:
    input:
        code=closure("train-masked-lm"),
        tokens=f"{MASKED_LM}/tokens/train.safetensors",
        tokenizer=rules.tokenize.output.tokenizer,
    output:
        model=MODEL,
        config=f"{MASKED_LM}/model/config.json",
        log=f"{MASKED_LM}/model/training.csv",
        summary=f"{MASKED_LM}/model/training.json",
    log:
        f"{RESULTS}/logs/masked_lm/train.log",
    # The longest chain of jobs hangs on this one.
    priority: 2
    threads: HALF
    resources:
        **needs("train_masked_lm"),
    params:
        model=json.dumps(SETTINGS["model"]),
        training=json.dumps(SETTINGS["training"]),
        seed=config["seed"],
    message:
        "Train the masked language model"
    shell:
        "replicate train-masked-lm --processes {resources.gpu} --tokens {input.tokens} --tokenizer $(dirname {input.tokenizer})"
        " --model {params.model:q} --training {params.training:q} --seed {params.seed} --output $(dirname {output.model}) > {log} 2>&1"


MODELS["masked_lm/model"] = {
    "stage": "train-masked-lm",
    "run": {key: SETTINGS[key] for key in ("model", "training")}
    | {"seed": config["seed"]},
    "text": [f"{MASKED_LM}/tokens/train.safetensors"],
    "made_from": f"{MASKED_LM}/tokens/train.safetensors",
    "measured": [f"{MASKED_LM}/perplexity.csv"],
}


rule perplexity:
    input:
        code=closure("perplexity"),
        model=MODEL,
        tokenizer=rules.tokenize.output.tokenizer,
        train=f"{MASKED_LM}/tokens/train.safetensors",
        tokens=[
            f"{MASKED_LM}/tokens/valid.safetensors",
            *expand(
                f"{MASKED_LM}/unseen/{{name}}/tokens/valid.safetensors",
                name=SETTINGS["unseen"],
            ),
        ],
    output:
        f"{MASKED_LM}/perplexity.csv",
    log:
        f"{RESULTS}/logs/masked_lm/perplexity.log",
    threads: HALF
    resources:
        **needs("perplexity"),
    params:
        names=" ".join(f"--name {name}" for name in ["held-out", *SETTINGS["unseen"]]),
        masking=json.dumps(SETTINGS["evaluation"]),
    message:
        "Measure the perplexity of the masked language model"
    shell:
        "replicate perplexity --model $(dirname {input.model}) --tokenizer $(dirname {input.tokenizer}) --train-tokens {input.train}"
        " $(printf ' --tokens %s' {input.tokens:q}) {params.names} --masking {params.masking:q} --output {output} > {log} 2>&1"


rule extract:
    input:
        code=closure("extract"),
        model=MODEL,
        tokens=[f"{MASKED_LM}/tokens/{split}.safetensors" for split in SPLITS],
    output:
        layers=expand(
            f"{MASKED_LM}/graphs/{{split}}/layer{{layer}}.safetensors",
            split=SPLITS,
            layer=MASKED_LM_LAYERS,
        ),
    log:
        f"{RESULTS}/logs/masked_lm/extract.log",
    priority: 1
    threads: HALF
    resources:
        **needs("extract"),
    params:
        sequences=" ".join(
            f"--sequences {SETTINGS['graphs'][split]}" for split in SPLITS
        ),
        seed=config["seed"],
    message:
        "Extract attention graphs of the masked language model"
    shell:
        "replicate extract --model $(dirname {input.model}) $(printf ' --tokens %s' {input.tokens}) {params.sequences}"
        " --seed {params.seed} --output $(dirname $(dirname {output.layers[0]})) > {log} 2>&1"


rule replace:
    input:
        code=closure("replace"),
        model=MODEL,
        tokenizer=rules.tokenize.output.tokenizer,
        tokens=f"{MASKED_LM}/tokens/valid.safetensors",
        projections=[f"{MASKED_LM}/projections/seed{seed}" for seed in SEEDS],
        centroids=[f"{MASKED_LM}/centroids/seed{seed}" for seed in SEEDS],
    output:
        tables=[f"{MASKED_LM}/replaced/seed{seed}.csv" for seed in SEEDS],
        losses=[f"{MASKED_LM}/replaced/losses_seed{seed}.parquet" for seed in SEEDS],
    log:
        f"{RESULTS}/logs/masked_lm/replace.log",
    priority: 1
    resources:
        **needs("replace"),
    params:
        methods=json.dumps(SETTINGS["replaced"]["methods"]),
        windows=windows(SETTINGS["replaced"]["windows"]),
        global_tokens=SETTINGS["global_tokens"],
        masking=json.dumps(SETTINGS["evaluation"]),
        seeds=as_seeds(SEEDS),
    message:
        "Evaluate the masked language model under predicted graphs"
    shell:
        "replicate replace --model $(dirname {input.model}) --tokenizer $(dirname {input.tokenizer}) --tokens {input.tokens}"
        " --projections $(dirname {input.projections[0]}) --centroids $(dirname {input.centroids[0]})"
        " --methods {params.methods:q} {params.windows} --global-tokens {params.global_tokens}"
        " --masking {params.masking:q} {params.seeds} --output $(dirname {output.tables[0]}) > {log} 2>&1"


SWEEPS = measured("masked_lm", "sweep/seed{seed}.parquet")
REPLACED = measured("masked_lm", "replaced/seed{seed}.csv")
LOSSES = measured("masked_lm", "replaced/losses_seed{seed}.parquet")
GRAPHS = [
    *measured("masked_lm", "graphs/{split}/layer{layer}.safetensors"),
    *measured("masked_lm", "projections/seed{seed}"),
    *measured("masked_lm", "centroids/seed{seed}"),
]
SENTENCES = GRAPHS + measured("masked_lm", "tokens/{split}.safetensors")
TRAINING = [f"{MASKED_LM}/perplexity.csv", f"{MASKED_LM}/model/training.json"]

FIGURES["00_patterns"] = GRAPHS
FIGURES["extremely_sparse/fig01_selection"] = SENTENCES
FIGURES["extremely_sparse/fig02_pipeline"] = SENTENCES
FIGURES["extremely_sparse/fig03_forms"] = SENTENCES
FIGURES["sparsefinder/fig01_method"] = SENTENCES
FIGURES["sparsefinder/fig04_tradeoff"] = [
    *SWEEPS,
    *REPLACED,
    *LOSSES,
    f"{MASKED_LM}/perplexity.csv",
]
FIGURES["sparsefinder/fig10_heads"] = SWEEPS
TABLES["sparsefinder/tables_masked_lm"] = SWEEPS + GRAPHS + TRAINING
MEASURED += SWEEPS + REPLACED + LOSSES
MEASURED += [f"{MASKED_LM}/perplexity.csv"]


include: "analysis.smk"


if "blocks" in SETTINGS:

    include: "blocks.smk"
