"""Translators trained with each attention form of the companion papers, of sentences and of documents."""

FORMS = config["forms"]
FORM_DATA = f"{RESULTS}/forms/{{unit}}/{{source}}-{{target}}"
FORM_LOGS = f"{RESULTS}/logs/forms/{{unit}}/{{source}}-{{target}}"


FORM_MEASURES = [
    "measured.csv",
    "sentences.parquet",
    "cross_attention.csv",
    "map.safetensors",
]


wildcard_constraints:
    unit="sentences|documents",
    source="[a-z]+",
    target="[a-z]+",


rule form_corpus:
    input:
        code=closure("parallel-corpus"),
    output:
        corpus=directory(f"{FORM_DATA}/corpus"),
    log:
        f"{FORM_LOGS}/corpus.log",
    resources:
        **needs("form_corpus"),
    params:
        corpus=lambda wildcards: corpus_of(FORMS[wildcards.unit], wildcards),
        splits="--split train --split valid --split test",
        units=lambda wildcards: (
            f"--block-words {FORMS[wildcards.unit]['block_words']}"
            if "block_words" in FORMS[wildcards.unit]
            else f"--align test --words {FORMS[wildcards.unit]['words']}"
        ),
    message:
        "Write or read {wildcards.unit} in {wildcards.source} and {wildcards.target}"
    shell:
        "replicate parallel-corpus --source {params.corpus:q} {params.splits} --language {wildcards.source}"
        " --language {wildcards.target} {params.units} --output {output.corpus} > {log} 2>&1"


rule form_binarize:
    input:
        code=closure("binarize"),
        corpus=rules.form_corpus.output.corpus,
    output:
        data=directory(f"{FORM_DATA}/data"),
    log:
        f"{FORM_LOGS}/binarize.log",
    resources:
        **needs("form_binarize"),
    params:
        splits="--split train --split valid --split test",
        words=lambda wildcards: FORMS[wildcards.unit]["words"],
        merges=lambda wildcards: FORMS[wildcards.unit]["merges"],
    message:
        "Cut the {wildcards.unit} in {wildcards.source} and {wildcards.target} into subwords"
    shell:
        "replicate binarize --corpus {input.corpus} --from {wildcards.source} --to {wildcards.target} {params.splits}"
        " --words {params.words} --merges {params.merges} --output {output.data} > {log} 2>&1"


for unit, section, pair, _, cells in form_jobs(FORMS):
    for cell in cells:
        at = f"{RESULTS}/forms/{unit}/{pair}"
        MODELS[f"forms/{unit}/{pair}/{cell['name']}"] = {
            "stage": "train-forms",
            "run": {key: section[key] for key in ("architecture", "training")}
            | {key: cell[key] for key in ("form", "budget", "seed")},
            "text": pieces(f"{at}/data", pair.split("-")),
            "made_from": f"{at}/data",
            "measured": [f"{at}/{cell['name']}/measured.csv"],
        }

# A job trains or measures several models if the configuration says so, and each has its own files: so no wildcard can name them.
for unit, section, pair, number, cells in form_jobs(FORMS, without_checkpoint):
    at = f"{RESULTS}/forms/{unit}/{pair}"

    rule:
        name:
            f"train_forms_{unit}_{pair.replace('-', '_')}_{number}"
        input:
            code=closure("train-forms"),
            data=f"{at}/data",
        output:
            expand(
                f"{at}/{{cell}}/{{file}}",
                cell=[cell["name"] for cell in cells],
                file=TRANSLATOR_FILES,
            ),
        log:
            f"{RESULTS}/logs/forms/{unit}/{pair}/train_{number}.log",
        resources:
            **needs("train_forms"),
        params:
            languages="--from {} --to {}".format(*pair.split("-")),
            cells=as_options(cells),
            architecture=json.dumps(section["architecture"]),
            training=json.dumps(section["training"]),
        message:
            f"Train {len(cells)} translators of {unit}, {pair}, with their attention forms"
        shell:
            "replicate train-forms --data {input.data} {params.languages} {params.cells}"
            " --architecture {params.architecture:q} --training {params.training:q} --output $(dirname {input.data}) > {log} 2>&1"


for unit, section, pair, number, cells in form_jobs(FORMS):
    at = f"{RESULTS}/forms/{unit}/{pair}"

    rule:
        name:
            f"measure_forms_{unit}_{pair.replace('-', '_')}_{number}"
        input:
            code=closure("measure-forms"),
            corpus=f"{at}/corpus",
            data=f"{at}/data",
            models=[f"{at}/{cell['name']}/model.safetensors" for cell in cells],
        output:
            expand(
                f"{at}/{{cell}}/{{file}}",
                cell=[cell["name"] for cell in cells],
                file=FORM_MEASURES,
            ),
        log:
            f"{RESULTS}/logs/forms/{unit}/{pair}/measure_{number}.log",
        priority: 1
        resources:
            **needs("measure_forms"),
        params:
            target=pair.split("-")[1],
            cells=as_options(cells),
            beam=section["beam"],
            tested=f"--tested {section['tested']}" if "tested" in section else "",
            words=section["words"],
            alignment=(
                f"--alignment {at}/corpus/test.alignment"
                if word_alignment_is_known(section, pair)
                else ""
            ),
        message:
            f"Measure {len(cells)} translators of {unit}, {pair}, with their attention forms"
        shell:
            "replicate measure-forms --data {input.data} {params.cells} --references {input.corpus}/test.{params.target}"
            " {params.alignment} {params.tested} --beam {params.beam} --words {params.words} --output $(dirname {input.data}) > {log} 2>&1"


PRONOUNS = []
for pair, cells in pronoun_jobs(FORMS["documents"]) if "documents" in FORMS else []:
    section, at = FORMS["documents"], f"{RESULTS}/forms/documents/{pair}"
    tables = [f"{at}/{cell['name']}/pronouns.csv" for cell in cells]
    PRONOUNS += tables

    rule:
        name:
            f"measure_pronouns_{pair.replace('-', '_')}"
        input:
            code=closure("measure-pronouns"),
            data=f"{at}/data",
            models=[f"{at}/{cell['name']}/model.safetensors" for cell in cells],
        output:
            tables,
        log:
            f"{RESULTS}/logs/forms/documents/{pair}/pronouns.log",
        resources:
            **needs("measure_pronouns"),
        params:
            corpus=json.dumps(section["corpus"][pair]),
            splits="--split train --split valid --split test",
            languages="--from {} --to {}".format(*pair.split("-")),
            cells=as_options(cells),
            block_words=section["block_words"],
            words=section["words"],
        message:
            f"Measure the pronouns of {len(cells)} translators of documents, {pair}"
        shell:
            "replicate measure-pronouns --data {input.data} --source {params.corpus:q} {params.splits} {params.languages}"
            " --block-words {params.block_words} --words {params.words} {params.cells} --output $(dirname {input.data}) > {log} 2>&1"


FORM_MEASURED = {
    unit: [
        f"{RESULTS}/forms/{unit}/{pair}/{cell['name']}/{table}"
        for one, section, pair, number, cells in form_jobs(FORMS)
        for cell in cells
        for table in ("measured.csv", "sentences.parquet", "cross_attention.csv")
        if one == unit
    ]
    for unit in FORMS
}
if "sentences" in FORMS:
    seeds_of = {
        form: {
            cell["seed"]
            for cell in form_cells(FORMS["sentences"]["runs"])
            if cell["form"] == form
        }
        for form in ("Full", "Top-k")
    }
    # Explicit Sparse Transformer is about these two.
    if seeds_of["Full"] & seeds_of["Top-k"]:
        FIGURES["explicit_sparse/fig27_budget"] = FORM_MEASURED["sentences"]
        FIGURES["explicit_sparse/fig33_maps"] = FORM_MEASURED["sentences"]
        TABLES["explicit_sparse/tables_translation"] = FORM_MEASURED["sentences"]
    TABLES["extremely_sparse/table1_sentences"] = [
        *FORM_MEASURED["sentences"],
        "config/published/extremely_sparse_table1.csv",
    ]
if "documents" in FORMS:
    TABLES["extremely_sparse/table2_documents"] = [
        *FORM_MEASURED["documents"],
        *PRONOUNS,
        "config/published/extremely_sparse_table2.csv",
    ]
MEASURED += [path for paths in FORM_MEASURED.values() for path in paths]
