"""Machine translation: parallel text, training with fairseq, decoder graphs, and decoding under predicted graphs."""

MT = RUN.translation
PAIR = Translation(RESULTS / "translation" / "{source}-{target}")
MT_LOGS = LOGS / "translation" / "{source}-{target}"


rule parallel_corpus:
    input:
        text=text_of(PARALLEL_PLACES, "translation/{source}-{target}"),
    output:
        corpus_files(PAIR, ALL_SPLITS),
    log:
        MT_LOGS / "corpus.log",
    # Long jobs wait for every pair.
    priority: 1
    resources:
        **needs("parallel_corpus"),
    params:
        code=closure_hash("parallel-corpus"),
        config=CONFIGURATION,
        settings=pair_settings,
    message:
        "Prepare sentences in {wildcards.source} and {wildcards.target}"
    shell:
        "replicate parallel-corpus translation/{wildcards.source}-{wildcards.target} --config {params.config} > {log} 2>&1"


rule binarize:
    input:
        corpus=corpus_files(PAIR, ALL_SPLITS),
        like=PAIR.pretraining.data if MT.pretraining else [],
    output:
        directory(PAIR.data),
    log:
        MT_LOGS / "binarize.log",
    priority: 1
    resources:
        **needs("binarize"),
    params:
        code=closure_hash("binarize"),
        config=CONFIGURATION,
        settings=picked(MT, "words", "merges"),
    message:
        "Tokenize sentences in {wildcards.source} and {wildcards.target}"
    shell:
        "replicate binarize translation/{wildcards.source}-{wildcards.target} --config {params.config} > {log} 2>&1"


rule train_translation:
    input:
        data=rules.binarize.output,
        initial=PAIR.pretraining.model if MT.pretraining else [],
    output:
        [PAIR.model_file(name) for name in TRANSLATOR_FILES],
    log:
        MT_LOGS / "train.log",
    priority: 1
    resources:
        **needs("train_translation"),
    params:
        code=closure_hash("train-translation"),
        config=CONFIGURATION,
        settings=picked(MT, "architecture", "training"),
        seed=RUN.seed,
    message:
        "Train the translator from {wildcards.source} to {wildcards.target}"
    shell:
        "replicate train-translation --processes {resources.gpu} translation/{wildcards.source}-{wildcards.target}"
        " --config {params.config} > {log} 2>&1"


if MT.pretraining:
    FIRST = PAIR.pretraining

    rule pretraining_corpus:
        input:
            text=text_of(PARALLEL_PLACES, "translation/{source}-{target}/pretraining"),
        output:
            corpus_files(FIRST, SPLITS),
        log:
            MT_LOGS / "pretraining" / "corpus.log",
        priority: 1
        resources:
            **needs("parallel_corpus"),
        params:
            code=closure_hash("parallel-corpus"),
            config=CONFIGURATION,
            settings=lambda wildcards: text_settings(
                PARALLEL_PLACES[
                    f"translation/{wildcards.source}-{wildcards.target}/pretraining"
                ]
            ),
        message:
            "Prepare pretraining sentences in {wildcards.source} and {wildcards.target}"
        shell:
            "replicate parallel-corpus translation/{wildcards.source}-{wildcards.target}/pretraining"
            " --config {params.config} > {log} 2>&1"

    rule pretraining_binarize:
        input:
            corpus=corpus_files(FIRST, SPLITS),
        output:
            directory(FIRST.data),
        log:
            MT_LOGS / "pretraining" / "binarize.log",
        priority: 1
        resources:
            **needs("binarize"),
        params:
            code=closure_hash("binarize"),
            config=CONFIGURATION,
            settings=picked(MT, "words", "merges"),
        message:
            "Tokenize pretraining sentences in {wildcards.source} and {wildcards.target}"
        shell:
            "replicate binarize translation/{wildcards.source}-{wildcards.target}/pretraining"
            " --config {params.config} > {log} 2>&1"

    rule pretraining_train:
        input:
            data=rules.pretraining_binarize.output,
        output:
            [FIRST.model_file(name) for name in TRANSLATOR_FILES],
        log:
            MT_LOGS / "pretraining" / "train.log",
        priority: 1
        resources:
            **needs("train_translation"),
        params:
            code=closure_hash("train-translation"),
            config=CONFIGURATION,
            settings=picked(MT, "architecture", "pretraining"),
            seed=RUN.seed,
        message:
            "Pretrain the translator from {wildcards.source} to {wildcards.target}"
        shell:
            "replicate train-translation --processes {resources.gpu} translation/{wildcards.source}-{wildcards.target}/pretraining"
            " --config {params.config} > {log} 2>&1"


rule extract_decoder:
    input:
        model=PAIR.model,
        data=rules.binarize.output,
    output:
        [
            PAIR.graphs(split, layer)
            for split in SPLITS
            for layer in range(MT.architecture.decoder_layers)
        ],
        [PAIR.graph_sentences(split) for split in SPLITS],
    log:
        MT_LOGS / "extract.log",
    priority: 1
    resources:
        **needs("extract_decoder"),
    params:
        code=closure_hash("extract-decoder"),
        config=CONFIGURATION,
        settings=picked(MT, "graphs"),
        seed=RUN.seed,
    message:
        "Extract the decoder's attention graphs, {wildcards.source} to {wildcards.target}"
    shell:
        "replicate extract-decoder translation/{wildcards.source}-{wildcards.target} --config {params.config} > {log} 2>&1"


rule decode:
    input:
        model=PAIR.model,
        data=rules.binarize.output,
        references=PAIR.corpus("test", "{target}"),
        projections=[PAIR.projections(seed) for seed in SEEDS],
        centroids=[PAIR.centroids(seed) for seed in SEEDS],
    output:
        tables=[PAIR.replaced(seed) for seed in SEEDS],
        counts=[PAIR.sentences(seed) for seed in SEEDS],
    log:
        MT_LOGS / "decode.log",
    priority: 1
    resources:
        **needs("decode"),
    params:
        code=closure_hash("decode"),
        config=CONFIGURATION,
        settings=picked(MT, "replaced", "global_tokens", "decoding"),
    message:
        "Translate from {wildcards.source} to {wildcards.target} under predicted graphs"
    shell:
        "replicate decode translation/{wildcards.source}-{wildcards.target} --config {params.config} > {log} 2>&1"


rule bleu:
    input:
        model=PAIR.model,
        data=rules.binarize.output,
        references=PAIR.corpus("test", "{target}"),
    output:
        table=PAIR.bleu,
        hypotheses=PAIR.hypotheses,
    log:
        MT_LOGS / "bleu.log",
    resources:
        **needs("bleu"),
    params:
        code=closure_hash("bleu"),
        config=CONFIGURATION,
        beam=MT.decoding.beam,
    message:
        "Measure the BLEU of the translator from {wildcards.source} to {wildcards.target}"
    shell:
        "replicate bleu translation/{wildcards.source}-{wildcards.target} --config {params.config} > {log} 2>&1"
