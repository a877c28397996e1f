"""The masked language model: training, perplexity, its attention graphs, and evaluation under predicted graphs."""


rule train_masked_lm:
    input:
        code=modules("tasks/masked_lm", "entmax", "attention", "integrations/huggingface"),
        tokens=f"{MASKED_LM}/tokens/train.safetensors",
        tokenizer=rules.tokenize.output.tokenizer,
    output:
        model=f"{MASKED_LM}/model/model.safetensors",
        config=f"{MASKED_LM}/model/config.json",
        log=f"{MASKED_LM}/model/training.csv",
        summary=f"{MASKED_LM}/model/training.json",
    params:
        model=json.dumps(SETTINGS["model"]),
        training=json.dumps(SETTINGS["training"]),
        seed=config["seed"],
    threads: workflow.cores
    resources:
        gpu=1,
    conda:
        "../../environment.yml"
    shell:
        "sparselib train-masked-lm --tokens {input.tokens} --tokenizer {MASKED_LM}/tokenizer"
        " --model {params.model:q} --training {params.training:q} --seed {params.seed} --output {MASKED_LM}/model"


rule perplexity:
    input:
        code=modules("tasks/masked_lm_evaluation", "tasks/ngram"),
        model=rules.train_masked_lm.output.model,
        train=f"{MASKED_LM}/tokens/train.safetensors",
        tokens=[
            f"{MASKED_LM}/tokens/valid.safetensors",
            *expand(f"{MASKED_LM}/unseen/{{name}}/tokens/valid.safetensors", name=SETTINGS["unseen"]),
        ],
    output:
        report(
            f"{MASKED_LM}/perplexity.csv",
            caption="../report/perplexity.rst",
            category="Tables",
        ),
    params:
        names=" ".join(f"--name {name}" for name in ["held-out", *SETTINGS["unseen"]]),
        masking=json.dumps(SETTINGS["evaluation"]),
    threads: workflow.cores
    conda:
        "../../environment.yml"
    shell:
        "sparselib perplexity --model {MASKED_LM}/model --tokenizer {MASKED_LM}/tokenizer --train-tokens {input.train}"
        " $(printf ' --tokens %s' {input.tokens:q}) {params.names} --masking {params.masking:q} --output {output}"


rule extract:
    input:
        code=modules("graphs", "tasks/masked_lm_evaluation"),
        model=rules.train_masked_lm.output.model,
        tokens=f"{MASKED_LM}/tokens/{{split}}.safetensors",
    output:
        expand(f"{MASKED_LM}/graphs/{{{{split}}}}/layer{{layer}}.safetensors", layer=LAYERS),
    params:
        sequences=lambda wildcards: SETTINGS["graphs"][wildcards.split],
        seed=config["seed"],
    threads: workflow.cores
    resources:
        gpu=1,
    conda:
        "../../environment.yml"
    shell:
        "sparselib extract --model {MASKED_LM}/model --tokens {input.tokens} --sequences {params.sequences}"
        " --seed {params.seed} --output {MASKED_LM}/graphs/{wildcards.split}"


rule replace:
    input:
        code=[*modules("tasks/masked_lm_evaluation", "grids", "graph_mask", "metrics"), *PREDICTORS],
        model=rules.train_masked_lm.output.model,
        tokens=f"{MASKED_LM}/tokens/valid.safetensors",
        projections=expand(f"{MASKED_LM}/projections/seed{{{{seed}}}}/layer{{layer}}.safetensors", layer=LAYERS),
        centroids=expand(f"{MASKED_LM}/centroids/seed{{{{seed}}}}/layer{{layer}}.safetensors", layer=LAYERS),
    output:
        f"{MASKED_LM}/replaced/seed{{seed}}.csv",
    params:
        methods=json.dumps(SETTINGS["replaced"]["methods"]),
        windows=" ".join(f"--window {width}" for width in SETTINGS["replaced"]["windows"]),
        global_tokens=SETTINGS["global_tokens"],
        masking=json.dumps(SETTINGS["evaluation"]),
    resources:
        gpu=1,
    conda:
        "../../environment.yml"
    shell:
        "sparselib replace --model {MASKED_LM}/model --tokenizer {MASKED_LM}/tokenizer --tokens {input.tokens}"
        " $(printf ' --projection %s' {input.projections}) $(printf ' --centroids %s' {input.centroids})"
        " --methods {params.methods:q} {params.windows} --global-tokens {params.global_tokens}"
        " --masking {params.masking:q} --seed {wildcards.seed} --output {output}"
