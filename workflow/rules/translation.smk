"""Machine translation: parallel text, training with fairseq, decoder graphs, and decoding under predicted graphs."""

MT = config["translation"]
PAIR = f"{TRANSLATION}/{{source}}-{{target}}"
# Named here, as rules.train_...output would ask for that rule, and the model may come from a checkpoint.
TRANSLATOR = f"{PAIR}/model/model.safetensors"
MT_LOGS = f"{RESULTS}/logs/translation/{{source}}-{{target}}"
# The model that is trained first, on another corpus, if the configuration asks for one.
FIRST = MT.get("pretraining")


wildcard_constraints:
    source="[a-z]+",
    target="[a-z]+",


rule parallel_corpus:
    input:
        code=closure("parallel-corpus"),
    output:
        train=multiext(f"{PAIR}/corpus/train", ".{source}", ".{target}"),
        valid=multiext(f"{PAIR}/corpus/valid", ".{source}", ".{target}"),
        test=multiext(f"{PAIR}/corpus/test", ".{source}", ".{target}"),
    log:
        f"{MT_LOGS}/corpus.log",
    # What is long hangs on every pair.
    priority: 1
    resources:
        **needs("parallel_corpus"),
    params:
        corpus=lambda wildcards: corpus_of(MT, wildcards),
        splits="--split train --split valid --split test",
        blocks=f"--block-words {MT['block_words']}" if "block_words" in MT else "",
    message:
        "Write or read sentences in {wildcards.source} and {wildcards.target}"
    shell:
        "replicate parallel-corpus --source {params.corpus:q} {params.splits} {params.blocks} --language {wildcards.source}"
        " --language {wildcards.target} --output $(dirname {output.train[0]}) > {log} 2>&1"


rule binarize:
    input:
        code=closure("binarize"),
        corpus=rules.parallel_corpus.output,
        like=f"{PAIR}/pretraining/data/codes.bpe" if FIRST else [],
    output:
        codes=f"{PAIR}/data/codes.bpe",
        dictionary=f"{PAIR}/data/dict.{{target}}.txt",
        train=f"{PAIR}/data/train.{{source}}-{{target}}.{{target}}.bin",
        test=f"{PAIR}/data/test.{{source}}-{{target}}.{{target}}.bin",
    log:
        f"{MT_LOGS}/binarize.log",
    priority: 1
    resources:
        **needs("binarize"),
    params:
        splits="--split train --split valid --split test",
        words=MT["words"],
        merges=MT["merges"],
        like=lambda wildcards, input: (
            f"--like $(dirname {input.like})" if input.like else ""
        ),
    message:
        "Cut the sentences in {wildcards.source} and {wildcards.target} into subwords"
    shell:
        "replicate binarize --corpus $(dirname {input.corpus[0]}) --from {wildcards.source} --to {wildcards.target} {params.splits}"
        " --words {params.words} --merges {params.merges} {params.like} --output $(dirname {output.codes}) > {log} 2>&1"


rule train_translation:
    input:
        code=closure("train-translation"),
        data=rules.binarize.output,
        initial=f"{PAIR}/pretraining/model/model.safetensors" if FIRST else [],
    output:
        model=TRANSLATOR,
        log=f"{PAIR}/model/training.csv",
        summary=f"{PAIR}/model/training.json",
    log:
        f"{MT_LOGS}/train.log",
    priority: 1
    resources:
        **needs("train_translation"),
    params:
        architecture=json.dumps(MT["architecture"]),
        training=json.dumps(MT["training"]),
        seed=config["seed"],
        initial=lambda wildcards, input: (
            f"--initial {input.initial}" if input.initial else ""
        ),
    message:
        "Train the translator from {wildcards.source} to {wildcards.target}"
    shell:
        "replicate train-translation --processes {resources.gpu} --data $(dirname {input.data[0]}) --from {wildcards.source} --to {wildcards.target}"
        " --architecture {params.architecture:q} --training {params.training:q} --seed {params.seed} {params.initial}"
        " --output $(dirname {output.model}) > {log} 2>&1"


if FIRST:

    use rule parallel_corpus as pretraining_corpus with:
        output:
            train=multiext(f"{PAIR}/pretraining/corpus/train", ".{source}", ".{target}"),
            valid=multiext(f"{PAIR}/pretraining/corpus/valid", ".{source}", ".{target}"),
        log:
            f"{MT_LOGS}/pretraining/corpus.log",
        params:
            corpus=lambda wildcards: corpus_of(FIRST, wildcards),
            splits="--split train --split valid",
            blocks="",
        message:
            "Write or read sentences in {wildcards.source} and {wildcards.target} for the first training"

    use rule binarize as pretraining_binarize with:
        input:
            code=rules.binarize.input.code,
            corpus=rules.pretraining_corpus.output,
            like=[],
        output:
            codes=f"{PAIR}/pretraining/data/codes.bpe",
            dictionary=f"{PAIR}/pretraining/data/dict.{{target}}.txt",
            train=f"{PAIR}/pretraining/data/train.{{source}}-{{target}}.{{target}}.bin",
        log:
            f"{MT_LOGS}/pretraining/binarize.log",
        params:
            splits="--split train --split valid",
            words=MT["words"],
            merges=MT["merges"],
            like="",
        message:
            "Cut the sentences of the first training, {wildcards.source} to {wildcards.target}, into subwords"

    use rule train_translation as pretraining_train with:
        input:
            code=rules.train_translation.input.code,
            data=rules.pretraining_binarize.output,
            initial=[],
        output:
            model=f"{PAIR}/pretraining/model/model.safetensors",
            log=f"{PAIR}/pretraining/model/training.csv",
            summary=f"{PAIR}/pretraining/model/training.json",
        log:
            f"{MT_LOGS}/pretraining/train.log",
        params:
            architecture=json.dumps(MT["architecture"]),
            training=json.dumps(FIRST["training"]),
            seed=config["seed"],
            initial="",
        message:
            "Train a first translator from {wildcards.source} to {wildcards.target}"


for pair in PAIRS:
    at = f"{TRANSLATION}/{pair}"
    MODELS[f"translation/{pair}/model"] = {
        "stage": "train-translation",
        "run": {key: MT[key] for key in ("architecture", "training")}
        | {"pretraining": FIRST, "seed": config["seed"]},
        "text": pieces(f"{at}/data", pair.split("-")),
        "made_from": f"{at}/data/codes.bpe",
        "measured": [f"{at}/bleu.csv"],
    }


rule extract_decoder:
    input:
        code=closure("extract-decoder"),
        model=TRANSLATOR,
        data=rules.binarize.output,
    output:
        layers=expand(
            f"{PAIR}/graphs/{{split}}/layer{{layer}}.safetensors",
            split=SPLITS,
            layer=layers(f"translation/{PAIRS[0]}"),
            allow_missing=True,
        ),
        text=expand(
            f"{PAIR}/graphs/{{split}}/sentences.parquet",
            split=SPLITS,
            allow_missing=True,
        ),
    log:
        f"{MT_LOGS}/extract.log",
    priority: 1
    resources:
        **needs("extract_decoder"),
    params:
        sentences=" ".join(
            f"--split {split} --sentences {MT['graphs'][split]}" for split in SPLITS
        ),
        shortest=MT["graphs"]["longer_than"],
        seed=config["seed"],
    message:
        "Extract the decoder's attention graphs, {wildcards.source} to {wildcards.target}"
    shell:
        "replicate extract-decoder --model {input.model} --data $(dirname {input.data[0]}) {params.sentences}"
        " --shortest {params.shortest} --seed {params.seed} --output $(dirname $(dirname {output.text[0]})) > {log} 2>&1"


rule decode:
    input:
        code=closure("decode"),
        model=TRANSLATOR,
        data=rules.binarize.output,
        references=f"{PAIR}/corpus/test.{{target}}",
        projections=[f"{PAIR}/projections/seed{seed}" for seed in SEEDS],
        centroids=[f"{PAIR}/centroids/seed{seed}" for seed in SEEDS],
    output:
        tables=[f"{PAIR}/replaced/seed{seed}.csv" for seed in SEEDS],
        counts=[f"{PAIR}/replaced/sentences_seed{seed}.parquet" for seed in SEEDS],
    log:
        f"{MT_LOGS}/decode.log",
    priority: 1
    resources:
        **needs("decode"),
    params:
        methods=json.dumps(MT["replaced"]["methods"]),
        windows=windows(MT["replaced"]["windows"]),
        global_tokens=MT["global_tokens"],
        words=MT["words"],
        sentences=MT["decoding"]["sentences"],
        beam=MT["decoding"]["beam"],
        seeds=as_seeds(SEEDS),
    message:
        "Translate from {wildcards.source} to {wildcards.target} under predicted graphs"
    shell:
        "replicate decode --model {input.model} --data $(dirname {input.data[0]}) --references {input.references} --split test"
        " --sentences {params.sentences} --beam {params.beam} --words {params.words}"
        " --projections $(dirname {input.projections[0]}) --centroids $(dirname {input.centroids[0]})"
        " --methods {params.methods:q} {params.windows} --global-tokens {params.global_tokens} {params.seeds}"
        " --output $(dirname {output.tables[0]}) > {log} 2>&1"


rule bleu:
    input:
        code=closure("bleu"),
        model=TRANSLATOR,
        data=rules.binarize.output,
        references=f"{PAIR}/corpus/test.{{target}}",
    output:
        table=f"{PAIR}/bleu.csv",
        hypotheses=f"{PAIR}/hypotheses.txt",
    log:
        f"{MT_LOGS}/bleu.log",
    resources:
        **needs("bleu"),
    params:
        words=MT["words"],
        beam=MT["decoding"]["beam"],
    message:
        "Measure the BLEU of the translator from {wildcards.source} to {wildcards.target}"
    shell:
        "replicate bleu --model {input.model} --data $(dirname {input.data[0]}) --references {input.references} --split test"
        " --beam {params.beam} --words {params.words} --output {output.table} --hypotheses {output.hypotheses} > {log} 2>&1"


OF_PAIR = {
    pair: [
        *measured(f"translation/{pair}", "sweep/seed{seed}.parquet"),
        *measured(f"translation/{pair}", "replaced/seed{seed}.csv"),
        f"{TRANSLATION}/{pair}/bleu.csv",
    ]
    for pair in PAIRS
}
# Which pairs there are, a notebook sees from what was measured: so each one waits for all of them.
EVERY_PAIR = [path for paths in OF_PAIR.values() for path in paths]

OF_SENTENCES = [
    path
    for pair in PAIRS
    for path in measured(f"translation/{pair}", "replaced/sentences_seed{seed}.parquet")
]
FIGURES["sparsefinder/fig02_translation"] = EVERY_PAIR + OF_SENTENCES
TABLES["sparsefinder/tables_translation"] = EVERY_PAIR
MEASURED += EVERY_PAIR + OF_SENTENCES

# Of one pair each: the notebook, and what it is told. Maps are those of k-means.
CLUSTERED = any(
    method["predictor"] == "Clustering"
    for method in config["translation"]["methods"].values()
)
# The paper's Figures 8 and 11 show en-de; 3, 9 and 12 show en-fr. Two other pairs take these places in the order of their names.
# A single pair has only its own figures: the others would repeat it under another pair's name.
PLACES = {"en-de": min(PAIRS), "en-fr": max(PAIRS)}
if len(PAIRS) == 1:
    del PLACES["en-de" if PAIRS == ["en-fr"] else "en-fr"]
for figure, template, place, told in (
    ("fig08_heads", "fig08_heads", "en-de", {}),
    ("fig09_heads", "fig08_heads", "en-fr", {}),
    ("fig03_maps", "fig03_maps", "en-fr", {"first": 0, "count": 2}),
    ("fig11_maps", "fig03_maps", "en-de", {"first": 0, "count": 4}),
    ("fig12_maps", "fig03_maps", "en-fr", {"first": 2, "count": 4}),
):
    if place not in PLACES or (template == "fig03_maps" and not CLUSTERED):
        continue
    told = {"pair": PLACES[place], **told}
    FIGURES[f"sparsefinder/{figure}"] = OF_PAIR[told["pair"]]
    DRAWN_BY[f"sparsefinder/{figure}"] = f"sparsefinder/{template}"
    TOLD[f"sparsefinder/{figure}"] = {"figure": figure, **told}
