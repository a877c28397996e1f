"""Efficient Sparsefinder: chunk projections, perplexity under predicted blocks, and time; a folder for every block size."""

BLOCKS = SETTINGS["blocks"]
# What fitting and choosing blocks depend on: sizes are wildcards, and a K more is no reason to fit anew.
FITTED = json.dumps({key: BLOCKS[key] for key in ("clusters", "pooling")})
CHOSEN = json.dumps(
    {key: BLOCKS[key] for key in ("counts", "clusters", "pooling", "metric")}
)
SIZE = f"{MASKED_LM}/blocks/size{{size}}"
BLOCK_LOGS = f"{RESULTS}/logs/masked_lm/blocks/size{{size}}"


wildcard_constraints:
    size=r"\d+",


rule fit_blocks:
    input:
        code=closure("fit-blocks"),
        graphs=expand(
            f"{MASKED_LM}/graphs/train/layer{{layer}}.safetensors",
            layer=MASKED_LM_LAYERS,
        ),
    output:
        projections=expand(
            f"{SIZE}/seed{{seed}}/projections/layer{{layer}}.safetensors",
            layer=MASKED_LM_LAYERS,
            allow_missing=True,
        ),
        centroids=expand(
            f"{SIZE}/seed{{seed}}/centroids/layer{{layer}}.safetensors",
            layer=MASKED_LM_LAYERS,
            allow_missing=True,
        ),
    log:
        f"{BLOCK_LOGS}/fit_seed{{seed}}.log",
    params:
        settings=json.dumps(SETTINGS["projection"]),
        blocks=FITTED,
        points=SETTINGS["cluster_points"],
    message:
        "Learn projections and centroids of blocks of {wildcards.size}, seed {wildcards.seed}"
    shell:
        "replicate fit-blocks $(printf ' --graphs %s' {input.graphs}) --block-size {wildcards.size}"
        " --settings {params.settings:q} --blocks {params.blocks:q} --points {params.points} --seed {wildcards.seed}"
        " --output $(dirname $(dirname {output.projections[0]})) > {log} 2>&1"


rule evaluate_blocks:
    input:
        code=closure("evaluate-blocks"),
        model=rules.train_masked_lm.output.model,
        tokenizer=rules.tokenize.output.tokenizer,
        tokens=f"{MASKED_LM}/tokens/valid.safetensors",
        projections=rules.fit_blocks.output.projections,
        centroids=rules.fit_blocks.output.centroids,
    output:
        table=f"{SIZE}/evaluated/seed{{seed}}.csv",
        losses=f"{SIZE}/evaluated/losses_seed{{seed}}.parquet",
    log:
        f"{BLOCK_LOGS}/evaluate_seed{{seed}}.log",
    resources:
        gpu=1,
    params:
        blocks=CHOSEN,
        masking=json.dumps(SETTINGS["evaluation"]),
    message:
        "Evaluate the masked language model under predicted blocks of {wildcards.size}, seed {wildcards.seed}"
    shell:
        "replicate evaluate-blocks --model $(dirname {input.model}) --tokenizer $(dirname {input.tokenizer})"
        " --tokens {input.tokens} $(printf ' --projection %s' {input.projections})"
        " $(printf ' --centroids %s' {input.centroids}) --block-size {wildcards.size} --blocks {params.blocks:q}"
        " --masking {params.masking:q} --seed {wildcards.seed} --output {output.table} --losses {output.losses} > {log} 2>&1"


# Alone on the machine: it takes every core.
rule time_blocks:
    input:
        code=closure("time-blocks"),
        model=rules.train_masked_lm.output.model,
        tokenizer=rules.tokenize.output.tokenizer,
        tokens=f"{MASKED_LM}/tokens/valid.safetensors",
        projections=expand(
            rules.fit_blocks.output.projections, seed=SEEDS[0], allow_missing=True
        ),
        centroids=expand(
            rules.fit_blocks.output.centroids, seed=SEEDS[0], allow_missing=True
        ),
    output:
        f"{SIZE}/timed.csv",
    log:
        f"{BLOCK_LOGS}/time.log",
    threads: workflow.cores
    resources:
        gpu=1,
    params:
        blocks=CHOSEN,
        masking=json.dumps(SETTINGS["evaluation"]),
        repeats=BLOCKS["repeats"],
        seed=SEEDS[0],
    message:
        "Time blocks of {wildcards.size}"
    shell:
        "replicate time-blocks --model $(dirname {input.model}) --tokenizer $(dirname {input.tokenizer})"
        " --tokens {input.tokens} $(printf ' --projection %s' {input.projections})"
        " $(printf ' --centroids %s' {input.centroids}) --block-size {wildcards.size} --blocks {params.blocks:q}"
        " --masking {params.masking:q} --repeats {params.repeats} --seed {params.seed} --output {output} > {log} 2>&1"


BLOCK_TABLES = expand(
    [f"{SIZE}/evaluated/seed{{seed}}.csv", f"{SIZE}/timed.csv"],
    size=BLOCKS["sizes"],
    seed=SEEDS,
)
BLOCK_LOSSES = expand(
    rules.evaluate_blocks.output.losses, size=BLOCKS["sizes"], seed=SEEDS
)
FIGURES["sparsefinder/fig07_efficient"] = BLOCK_TABLES
FIGURES["sparsefinder/fig13_efficient_blocks"] = BLOCK_TABLES
MEASURED += BLOCK_TABLES + BLOCK_LOSSES
