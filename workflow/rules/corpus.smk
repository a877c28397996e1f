"""From a corpus to sequences of subword ids."""


rule corpus:
    input:
        code=modules("corpora/grammar", "corpora/folder", "corpora/hub", "corpora/table"),
    output:
        expand(f"{MASKED_LM}/corpus/{{split}}.parquet", split=SPLITS),
    params:
        source=json.dumps(SETTINGS["corpus"]),
        splits=" ".join(f"--split {split}" for split in SPLITS),
    conda:
        "../../environment.yml"
    shell:
        "sparselib corpus --source {params.source:q} {params.splits} --output {MASKED_LM}/corpus"


rule tokenize:
    input:
        code=modules("corpora/tokens"),
        corpus=rules.corpus.output,
    output:
        tokens=expand(f"{MASKED_LM}/tokens/{{split}}.safetensors", split=SPLITS),
        tokenizer=f"{MASKED_LM}/tokenizer/tokenizer.json",
    params:
        length=SETTINGS["length"],
        tokenizer=" ".join(f"--{key.replace('_', '-')} {value}" for key, value in SETTINGS["tokenizer"].items()),
    conda:
        "../../environment.yml"
    shell:
        "sparselib tokenize $(printf ' --corpus %s' {input.corpus:q}) --length {params.length}"
        " --output {MASKED_LM}/tokens --tokenizer {MASKED_LM}/tokenizer {params.tokenizer}"


rule unseen_corpus:
    input:
        code=modules("corpora/folder", "corpora/hub", "corpora/table"),
    output:
        f"{MASKED_LM}/unseen/{{name}}/corpus/valid.parquet",
    params:
        source=lambda wildcards: json.dumps(SETTINGS["unseen"][wildcards.name]),
    conda:
        "../../environment.yml"
    shell:
        "sparselib corpus --source {params.source:q} --split valid --output {MASKED_LM}/unseen/{wildcards.name}/corpus"


rule tokenize_unseen:
    input:
        code=modules("corpora/tokens"),
        corpus=rules.unseen_corpus.output,
        tokenizer=rules.tokenize.output.tokenizer,
    output:
        f"{MASKED_LM}/unseen/{{name}}/tokens/valid.safetensors",
    params:
        length=SETTINGS["length"],
    conda:
        "../../environment.yml"
    shell:
        "sparselib tokenize --corpus {input.corpus} --length {params.length}"
        " --output {MASKED_LM}/unseen/{wildcards.name}/tokens --tokenizer {MASKED_LM}/tokenizer"
