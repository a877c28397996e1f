"""From a corpus to sequences of subword ids."""


rule corpus:
    input:
        code=closure("corpus"),
    output:
        train=f"{MASKED_LM}/corpus/train.parquet",
        valid=f"{MASKED_LM}/corpus/valid.parquet",
    log:
        f"{RESULTS}/logs/masked_lm/corpus.log",
    # Long, or on the way to what is long: begun last, they would leave a core idle at the end of the run.
    priority: 1
    resources:
        **needs("corpus"),
    params:
        source=json.dumps(SETTINGS["corpus"]),
        splits=" ".join(f"--split {split}" for split in SPLITS),
    message:
        "Write or read the corpus"
    shell:
        "replicate corpus --source {params.source:q} {params.splits} --tag valid --output $(dirname {output.train}) > {log} 2>&1"


rule tokenize:
    input:
        code=closure("tokenize"),
        corpus=[rules.corpus.output.train, rules.corpus.output.valid],
    output:
        train=f"{MASKED_LM}/tokens/train.safetensors",
        valid=f"{MASKED_LM}/tokens/valid.safetensors",
        tokenizer=f"{MASKED_LM}/tokenizer/tokenizer.json",
    log:
        f"{RESULTS}/logs/masked_lm/tokenize.log",
    priority: 1
    resources:
        **needs("tokenize"),
    params:
        length=SETTINGS["length"],
        tokenizer=" ".join(
            f"--{key.replace('_', '-')} {value}"
            for key, value in SETTINGS["tokenizer"].items()
        ),
    message:
        "Cut the corpus into subwords"
    shell:
        "replicate tokenize $(printf ' --corpus %s' {input.corpus:q}) --length {params.length}"
        " --output $(dirname {output.train}) --tokenizer $(dirname {output.tokenizer}) {params.tokenizer} > {log} 2>&1"


rule unseen_corpus:
    input:
        code=closure("corpus"),
    output:
        f"{MASKED_LM}/unseen/{{name}}/corpus/valid.parquet",
    log:
        f"{RESULTS}/logs/masked_lm/unseen_corpus/{{name}}.log",
    resources:
        **needs("unseen_corpus"),
    params:
        source=lambda wildcards: json.dumps(SETTINGS["unseen"][wildcards.name]),
    message:
        "Read the corpus {wildcards.name}"
    shell:
        "replicate corpus --source {params.source:q} --split valid --output $(dirname {output}) > {log} 2>&1"


rule tokenize_unseen:
    input:
        code=closure("tokenize"),
        corpus=rules.unseen_corpus.output,
        tokenizer=rules.tokenize.output.tokenizer,
    output:
        f"{MASKED_LM}/unseen/{{name}}/tokens/valid.safetensors",
    log:
        f"{RESULTS}/logs/masked_lm/tokenize_unseen/{{name}}.log",
    resources:
        **needs("tokenize_unseen"),
    params:
        length=SETTINGS["length"],
    message:
        "Cut the corpus {wildcards.name} into subwords"
    shell:
        "replicate tokenize --corpus {input.corpus} --length {params.length}"
        " --output $(dirname {output}) --tokenizer $(dirname {input.tokenizer}) > {log} 2>&1"
