"""Masked language model: text, training, perplexity, attention graphs, and evaluation under predicted graphs."""

SECTION = RUN.masked_lm
FILES = MaskedLM(RESULTS / "masked_lm")
MASKED_LM_LOGS = LOGS / "masked_lm"
UNSEEN = FILES.unseen("{name}")


wildcard_constraints:
    name=either(SECTION.unseen),


rule corpus:
    input:
        text=text_of(TOKEN_PLACES, "masked_lm"),
    output:
        [FILES.corpus(split) for split in SPLITS],
    log:
        MASKED_LM_LOGS / "corpus.log",
    # Long jobs, and jobs that long ones wait for, start first: otherwise cores would be idle at the end of the run.
    priority: 1
    resources:
        **needs("corpus"),
    params:
        code=closure_hash("corpus"),
        config=CONFIGURATION,
        settings=lambda _: text_settings(TOKEN_PLACES["masked_lm"]),
    message:
        "Prepare the corpus"
    shell:
        "replicate corpus masked_lm --config {params.config} > {log} 2>&1"


rule tokenize:
    input:
        pretrained=local_model(SECTION.tokenizer.pretrained),
        corpus=[FILES.corpus(split) for split in SPLITS],
    output:
        [FILES.tokens(split) for split in SPLITS],
        tokenizer=tokenizer_files(FILES.tokenizer),
    log:
        MASKED_LM_LOGS / "tokenize.log",
    priority: 1
    resources:
        **needs("tokenize"),
    params:
        code=closure_hash("tokenize"),
        config=CONFIGURATION,
        settings=picked(SECTION, "tokenizer", "length"),
    message:
        "Tokenize the corpus"
    shell:
        "replicate tokenize masked_lm --config {params.config} > {log} 2>&1"


rule unseen_corpus:
    input:
        text=text_of(TOKEN_PLACES, "masked_lm/unseen/{name}"),
    output:
        UNSEEN.corpus("valid"),
    log:
        MASKED_LM_LOGS / "unseen_corpus" / "{name}.log",
    resources:
        **needs("unseen_corpus"),
    params:
        code=closure_hash("corpus"),
        config=CONFIGURATION,
        settings=lambda wildcards: text_settings(
            TOKEN_PLACES[f"masked_lm/unseen/{wildcards.name}"]
        ),
    message:
        "Read the corpus {wildcards.name}"
    shell:
        "replicate corpus masked_lm/unseen/{wildcards.name} --config {params.config} > {log} 2>&1"


rule tokenize_unseen:
    input:
        corpus=UNSEEN.corpus("valid"),
        tokenizer=tokenizer_files(FILES.tokenizer),
    output:
        UNSEEN.tokens("valid"),
    log:
        MASKED_LM_LOGS / "tokenize_unseen" / "{name}.log",
    resources:
        **needs("tokenize_unseen"),
    params:
        code=closure_hash("tokenize"),
        config=CONFIGURATION,
        settings=picked(SECTION, "length"),
    message:
        "Tokenize the corpus {wildcards.name}"
    shell:
        "replicate tokenize masked_lm/unseen/{wildcards.name} --config {params.config} > {log} 2>&1"


rule train_masked_lm:
    input:
        pretrained=local_model(getattr(SECTION.model, "pretrained", None)),
        tokens=FILES.tokens("train"),
        tokenizer=tokenizer_files(FILES.tokenizer),
    output:
        [FILES.model_file(name) for name in MODELS["masked_lm/model"].files],
    log:
        MASKED_LM_LOGS / "train.log",
    # The longest chain of jobs waits for this one.
    priority: 2
    threads: HALF
    resources:
        **needs("train_masked_lm"),
    params:
        code=closure_hash("train-masked-lm"),
        config=CONFIGURATION,
        settings=MODELS["masked_lm/model"].run,
    message:
        "Train the masked language model"
    shell:
        "replicate train-masked-lm --processes {resources.gpu} --config {params.config} > {log} 2>&1"


rule perplexity:
    input:
        model=FILES.model,
        tokenizer=tokenizer_files(FILES.tokenizer),
        tokens=[
            *(FILES.tokens(split) for split in SPLITS),
            *(FILES.unseen(name).tokens("valid") for name in SECTION.unseen),
        ],
    output:
        FILES.perplexity,
    log:
        MASKED_LM_LOGS / "perplexity.log",
    threads: HALF
    resources:
        **needs("perplexity"),
    params:
        code=closure_hash("perplexity"),
        config=CONFIGURATION,
        settings=picked(SECTION, "evaluation"),
        unseen=list(SECTION.unseen),
    message:
        "Measure the perplexity of the masked language model"
    shell:
        "replicate perplexity --config {params.config} > {log} 2>&1"


rule extract:
    input:
        model=FILES.model,
        tokens=[FILES.tokens(split) for split in SPLITS],
    output:
        [
            FILES.graphs(split, layer)
            for split in SPLITS
            for layer in range(SECTION.layers)
        ],
    log:
        MASKED_LM_LOGS / "extract.log",
    priority: 1
    threads: HALF
    resources:
        **needs("extract"),
    params:
        code=closure_hash("extract"),
        config=CONFIGURATION,
        settings=picked(SECTION, "graphs"),
        seed=RUN.seed,
    message:
        "Extract attention graphs of the masked language model"
    shell:
        "replicate extract --config {params.config} > {log} 2>&1"


rule replace:
    input:
        model=FILES.model,
        tokenizer=tokenizer_files(FILES.tokenizer),
        tokens=FILES.tokens("valid"),
        projections=[FILES.projections(seed) for seed in SEEDS],
        centroids=[FILES.centroids(seed) for seed in SEEDS],
    output:
        tables=[FILES.replaced(seed) for seed in SEEDS],
        losses=[FILES.losses(seed) for seed in SEEDS],
    log:
        MASKED_LM_LOGS / "replace.log",
    priority: 1
    resources:
        **needs("replace"),
    params:
        code=closure_hash("replace"),
        config=CONFIGURATION,
        settings=picked(SECTION, "replaced", "global_tokens", "evaluation"),
    message:
        "Evaluate the masked language model under predicted graphs"
    shell:
        "replicate replace --config {params.config} > {log} 2>&1"


rule coreference:
    input:
        graphs=[FILES.graphs("valid", layer) for layer in range(SECTION.layers)],
        tokens=FILES.tokens("valid"),
    output:
        FILES.coreference,
    log:
        LOGS / "coreference.log",
    resources:
        **needs("coreference"),
    params:
        code=closure_hash("coreference"),
        config=CONFIGURATION,
    message:
        "Find heads that attend to coreferent tokens"
    shell:
        "replicate coreference --config {params.config} > {log} 2>&1"


rule tags:
    input:
        graphs=[FILES.graphs("valid", layer) for layer in range(SECTION.layers)],
        tokens=FILES.tokens("valid"),
        projections=FILES.projections(SEEDS[0]),
        centroids=FILES.centroids(SEEDS[0]),
    output:
        FILES.tags,
    log:
        LOGS / "tags.log",
    resources:
        **needs("tags"),
    params:
        code=closure_hash("tags"),
        config=CONFIGURATION,
        settings=picked(SECTION, "tag_clusters"),
    message:
        "Count parts of speech in clusters"
    shell:
        "replicate tags --config {params.config} > {log} 2>&1"
