"""Efficient Sparsefinder: chunk projections, perplexity under predicted blocks, and time; a folder for every block size."""

BLOCKS = SETTINGS["blocks"]
# What fitting and choosing blocks depend on: a K more is no reason to fit anew.
FITTED = json.dumps({key: BLOCKS[key] for key in ("clusters", "pooling")})
CHOSEN = json.dumps(
    {key: BLOCKS[key] for key in ("counts", "clusters", "pooling", "metric")}
)
SIZES = " ".join(f"--block-size {size}" for size in BLOCKS["sizes"])
SIZE = f"{MASKED_LM}/blocks/size{{size}}"


rule fit_blocks:
    input:
        code=closure("fit-blocks"),
        graphs=expand(
            f"{MASKED_LM}/graphs/train/layer{{layer}}.safetensors",
            layer=MASKED_LM_LAYERS,
        ),
    output:
        students=expand(
            f"{SIZE}/seed{{seed}}/{{learned}}/layer{{layer}}.safetensors",
            size=BLOCKS["sizes"],
            seed=SEEDS,
            learned=["projections", "centroids"],
            layer=MASKED_LM_LAYERS,
        ),
    log:
        f"{RESULTS}/logs/masked_lm/blocks/fit.log",
    priority: 1
    resources:
        **needs("fit_blocks"),
    params:
        settings=json.dumps(SETTINGS["projection"]),
        blocks=FITTED,
        points=SETTINGS["cluster_points"],
        sizes=SIZES,
        seeds=as_seeds(SEEDS),
    message:
        "Learn projections and centroids of blocks"
    shell:
        "replicate fit-blocks $(printf ' --graphs %s' {input.graphs}) {params.sizes} --settings {params.settings:q}"
        " --blocks {params.blocks:q} --points {params.points} {params.seeds}"
        " --output $(dirname $(dirname $(dirname $(dirname {output.students[0]})))) > {log} 2>&1"


rule evaluate_blocks:
    input:
        code=closure("evaluate-blocks"),
        model=MODEL,
        tokenizer=rules.tokenize.output.tokenizer,
        tokens=f"{MASKED_LM}/tokens/valid.safetensors",
        students=rules.fit_blocks.output.students,
    output:
        tables=expand(
            f"{SIZE}/evaluated/seed{{seed}}.csv", size=BLOCKS["sizes"], seed=SEEDS
        ),
        losses=expand(
            f"{SIZE}/evaluated/losses_seed{{seed}}.parquet",
            size=BLOCKS["sizes"],
            seed=SEEDS,
        ),
    log:
        f"{RESULTS}/logs/masked_lm/blocks/evaluate.log",
    priority: 1
    resources:
        **needs("evaluate_blocks"),
    params:
        blocks=CHOSEN,
        masking=json.dumps(SETTINGS["evaluation"]),
        sizes=SIZES,
        seeds=as_seeds(SEEDS),
    message:
        "Evaluate the masked language model under predicted blocks"
    shell:
        "replicate evaluate-blocks --model $(dirname {input.model}) --tokenizer $(dirname {input.tokenizer})"
        " --tokens {input.tokens} --students $(dirname $(dirname $(dirname $(dirname {input.students[0]})))) {params.sizes} --blocks {params.blocks:q}"
        " --masking {params.masking:q} {params.seeds} --output $(dirname $(dirname $(dirname {output.tables[0]}))) > {log} 2>&1"


# Alone on the machine: it takes every core.
rule time_blocks:
    input:
        code=closure("time-blocks"),
        model=MODEL,
        tokenizer=rules.tokenize.output.tokenizer,
        tokens=f"{MASKED_LM}/tokens/valid.safetensors",
        students=rules.fit_blocks.output.students,
    output:
        tables=expand(f"{SIZE}/timed.csv", size=BLOCKS["sizes"]),
    log:
        f"{RESULTS}/logs/masked_lm/blocks/time.log",
    threads: CORES
    resources:
        **needs("time_blocks"),
    params:
        blocks=CHOSEN,
        masking=json.dumps(SETTINGS["evaluation"]),
        repeats=BLOCKS["repeats"],
        sizes=SIZES,
        seed=SEEDS[0],
    message:
        "Time predicted blocks"
    shell:
        "replicate time-blocks --model $(dirname {input.model}) --tokenizer $(dirname {input.tokenizer})"
        " --tokens {input.tokens} --students $(dirname $(dirname $(dirname $(dirname {input.students[0]})))) {params.sizes} --blocks {params.blocks:q}"
        " --masking {params.masking:q} --repeats {params.repeats} --seed {params.seed}"
        " --output $(dirname $(dirname {output.tables[0]})) > {log} 2>&1"


BLOCK_TABLES = expand(
    [f"{SIZE}/evaluated/seed{{seed}}.csv", f"{SIZE}/timed.csv"],
    size=BLOCKS["sizes"],
    seed=SEEDS,
)
FIGURES["sparsefinder/fig07_efficient"] = BLOCK_TABLES
FIGURES["sparsefinder/fig13_efficient_blocks"] = BLOCK_TABLES
MEASURED += BLOCK_TABLES + list(rules.evaluate_blocks.output.losses)
