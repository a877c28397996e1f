"""Translators of sentences and documents, trained with each attention form of the companion papers."""

FORMS = ParallelText(RESULTS / "forms" / "{unit}" / "{source}-{target}")
FORM_LOGS = LOGS / "forms" / "{unit}" / "{source}-{target}"
FORM_MEASURES = [
    "measured.csv",
    "sentences.parquet",
    "cross_attention.csv",
    "map.safetensors",
]


wildcard_constraints:
    unit="sentences|documents",


rule form_corpus:
    input:
        text=text_of(PARALLEL_PLACES, "forms/{unit}/{source}-{target}"),
    output:
        directory(FORMS.folder / "corpus"),
    log:
        FORM_LOGS / "corpus.log",
    resources:
        **needs("form_corpus"),
    params:
        code=closure_hash("parallel-corpus"),
        config=CONFIGURATION,
        settings=lambda wildcards: text_settings(form_place(wildcards)),
        words=lambda wildcards: form_place(wildcards).section.words,
    message:
        "Prepare {wildcards.unit} in {wildcards.source} and {wildcards.target}"
    shell:
        "replicate parallel-corpus forms/{wildcards.unit}/{wildcards.source}-{wildcards.target}"
        " --config {params.config} > {log} 2>&1"


rule form_binarize:
    input:
        corpus=FORMS.folder / "corpus",
    output:
        directory(FORMS.data),
    log:
        FORM_LOGS / "binarize.log",
    resources:
        **needs("form_binarize"),
    params:
        code=closure_hash("binarize"),
        config=CONFIGURATION,
        settings=lambda wildcards: picked(
            form_place(wildcards).section, "words", "merges"
        ),
    message:
        "Tokenize {wildcards.unit} in {wildcards.source} and {wildcards.target}"
    shell:
        "replicate binarize forms/{wildcards.unit}/{wildcards.source}-{wildcards.target} --config {params.config} > {log} 2>&1"


# A job may train or measure several models with a folder each, which no wildcard can express, so every job gets a rule.
for place, text in PARALLEL_PLACES.items():
    if not place.startswith("forms/"):
        continue
    _, unit, pair = place.split("/")
    files, section, name = text.files, text.section, f"{unit}_{pair.replace('-', '_')}"

    for number, cells in cell_jobs(
        section, lambda cell, place=place: not shipped(f"{place}/{cell.name}")
    ):

        rule:
            name:
                f"train_forms_{name}_{number}"
            input:
                data=files.data,
            output:
                [
                    files.cell(cell.name) / file
                    for cell in cells
                    for file in TRANSLATOR_FILES
                ],
            log:
                LOGS / place / f"train_{number}.log",
            resources:
                **needs("train_forms"),
            params:
                code=closure_hash("train-forms"),
                config=CONFIGURATION,
                settings=[MODELS[f"{place}/{cell.name}"].run for cell in cells],
                place=place,
                cells=[f"--cell {cell.name}" for cell in cells],
            message:
                f"Train translators with attention forms: {unit}, {pair}, models: {len(cells)}"
            shell:
                "replicate train-forms {params.place} {params.cells} --config {params.config} > {log} 2>&1"

    for number, cells in cell_jobs(section):

        rule:
            name:
                f"measure_forms_{name}_{number}"
            input:
                corpus=files.folder / "corpus",
                data=files.data,
                models=[files.cell(cell.name) / "model.safetensors" for cell in cells],
            output:
                [
                    files.cell(cell.name) / file
                    for cell in cells
                    for file in FORM_MEASURES
                ],
            log:
                LOGS / place / f"measure_{number}.log",
            priority: 1
            resources:
                **needs("measure_forms"),
            params:
                code=closure_hash("measure-forms"),
                config=CONFIGURATION,
                settings=picked(section, "beam", "tested"),
                columns=[cell.columns for cell in cells],
                place=place,
                cells=[f"--cell {cell.name}" for cell in cells],
            message:
                f"Measure translators with attention forms: {unit}, {pair}, models: {len(cells)}"
            shell:
                "replicate measure-forms {params.place} {params.cells} --config {params.config} > {log} 2>&1"
