"""Translators trained with each attention form of the companion papers, of sentences and of documents."""

FORMS = config["forms"]
FORM_DATA = f"{RESULTS}/forms/{{unit}}/{{source}}-{{target}}"
FORM_LOGS = f"{RESULTS}/logs/forms/{{unit}}/{{source}}-{{target}}"


CELLS = {unit: form_cells(section["runs"]) for unit, section in FORMS.items()}
FORM_MEASURED = [
    f"{RESULTS}/forms/{unit}/{pair}/{cell}/{table}.csv"
    for unit, section in FORMS.items()
    for pair in section["corpus"]
    for cell in CELLS[unit]
    for table in ("measured", "cross_attention")
]


wildcard_constraints:
    unit="sentences|documents",
    cell="[a-z-]+_(k[0-9]+_)?seed[0-9]+",
    source="[a-z]+",
    target="[a-z]+",


rule form_corpus:
    input:
        code=modules(
            "corpora/parallel",
            "corpora/translations",
            "corpora/sources",
            "corpora/document_blocks",
            "corpora/alignment",
        ),
    output:
        corpus=directory(f"{FORM_DATA}/corpus"),
    log:
        f"{FORM_LOGS}/corpus.log",
    conda:
        "../../environment.yml"
    params:
        corpus=lambda wildcards: corpus_of(FORMS[wildcards.unit], wildcards),
        splits="--split train --split valid --split test",
        units=lambda wildcards: (
            f"--block-words {FORMS[wildcards.unit]['block_words']}"
            if "block_words" in FORMS[wildcards.unit]
            else "--align test"
        ),
    shell:
        "sparselib parallel-corpus --source {params.corpus:q} {params.splits} --language {wildcards.source}"
        " --language {wildcards.target} {params.units} --output {output.corpus} 2>&1 | tee {log}"


rule form_binarize:
    input:
        code=modules("tasks/translation/data", "corpora/subwords"),
        corpus=rules.form_corpus.output.corpus,
    output:
        data=directory(f"{FORM_DATA}/data"),
    log:
        f"{FORM_LOGS}/binarize.log",
    conda:
        "../../environment.yml"
    params:
        splits="--split train --split valid --split test",
        words=lambda wildcards: FORMS[wildcards.unit]["words"],
        merges=lambda wildcards: FORMS[wildcards.unit]["merges"],
    shell:
        "sparselib binarize --corpus {input.corpus} --from {wildcards.source} --to {wildcards.target} {params.splits}"
        " --words {params.words} --merges {params.merges} --output {output.data} 2>&1 | tee {log}"


rule train_form:
    input:
        code=modules(
            "tasks/translation/training",
            "tasks/translation/forms",
            "tasks/translation/cross_attention",
            "tasks/translation/evaluation",
            "tasks/translation/model",
            "attention",
            "entmax",
            "integrations/control",
            "integrations/fairseq/attention",
            "integrations/fairseq/normalizers",
            "integrations/fairseq/transformer",
            "integrations/forms",
            "predictors/draws",
            "predictors/forms",
            "predictors/rows",
            "predictors/topk",
        ),
        corpus=rules.form_corpus.output.corpus,
        data=rules.form_binarize.output.data,
    output:
        model=f"{FORM_DATA}/{{cell}}/model.pt",
        log=f"{FORM_DATA}/{{cell}}/training.csv",
        summary=f"{FORM_DATA}/{{cell}}/training.json",
        measured=f"{FORM_DATA}/{{cell}}/measured.csv",
        concentration=f"{FORM_DATA}/{{cell}}/cross_attention.csv",
        map=f"{FORM_DATA}/{{cell}}/map.safetensors",
    log:
        f"{FORM_LOGS}/{{cell}}.log",
    conda:
        "../../environment.yml"
    resources:
        gpu=1,
    params:
        form=lambda wildcards: CELLS[wildcards.unit][wildcards.cell],
        architecture=lambda wildcards: json.dumps(FORMS[wildcards.unit]["architecture"]),
        training=lambda wildcards: json.dumps(FORMS[wildcards.unit]["training"]),
        beam=lambda wildcards: FORMS[wildcards.unit]["beam"],
        words=lambda wildcards: FORMS[wildcards.unit]["words"],
        alignment=lambda wildcards, input: (
            f"--alignment {input.corpus}/test.alignment"
            if word_alignment_is_known(FORMS[wildcards.unit], wildcards)
            else ""
        ),
    shell:
        "sparselib train-form --data {input.data} --from {wildcards.source} --to {wildcards.target} {params.form}"
        " --references {input.corpus}/test.{wildcards.target} {params.alignment} --beam {params.beam} --words {params.words}"
        " --architecture {params.architecture:q} --training {params.training:q} --output $(dirname {output.model})"
        " 2>&1 | tee {log}"
