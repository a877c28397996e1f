"""Speed, BLEU and attended keys of one translator with each normaliser (Explicit Sparse Transformer, Table 25)."""

SPEED = config["normalizer_speed"]
SPEED_AT = f"{RESULTS}/normalizer_speed"
SPEED_LOGS = f"{RESULTS}/logs/normalizer_speed"
SPEED_FROM, SPEED_TO = next(iter(SPEED["corpus"])).split("-")
SPEED_TABLE = f"{SPEED_AT}/speed.csv"


rule speed_corpus:
    input:
        code=closure("parallel-corpus"),
    output:
        train=multiext(f"{SPEED_AT}/corpus/train", f".{SPEED_FROM}", f".{SPEED_TO}"),
        valid=multiext(f"{SPEED_AT}/corpus/valid", f".{SPEED_FROM}", f".{SPEED_TO}"),
        test=multiext(f"{SPEED_AT}/corpus/test", f".{SPEED_FROM}", f".{SPEED_TO}"),
    log:
        f"{SPEED_LOGS}/corpus.log",
    params:
        corpus=json.dumps(next(iter(SPEED["corpus"].values()))),
        languages=f"--language {SPEED_FROM} --language {SPEED_TO}",
    message:
        "Write or read the sentences that normalisers are timed on"
    shell:
        "replicate parallel-corpus --source {params.corpus:q} --split train --split valid --split test {params.languages}"
        " --output $(dirname {output.train[0]}) > {log} 2>&1"


rule speed_binarize:
    input:
        code=closure("binarize"),
        corpus=rules.speed_corpus.output,
    output:
        dictionary=f"{SPEED_AT}/data/dict.{SPEED_TO}.txt",
        test=f"{SPEED_AT}/data/test.{SPEED_FROM}-{SPEED_TO}.{SPEED_TO}.bin",
    log:
        f"{SPEED_LOGS}/binarize.log",
    params:
        pair=f"--from {SPEED_FROM} --to {SPEED_TO}",
        words=SPEED["words"],
        merges=SPEED["merges"],
    message:
        "Cut the sentences that normalisers are timed on into subwords"
    shell:
        "replicate binarize --corpus $(dirname {input.corpus[0]}) {params.pair} --split train --split valid --split test"
        " --words {params.words} --merges {params.merges} --output $(dirname {output.dictionary}) > {log} 2>&1"


rule normalizer_speed:
    input:
        code=closure("normalizer-speed"),
        data=rules.speed_binarize.output,
        references=f"{SPEED_AT}/corpus/test.{SPEED_TO}",
    output:
        table=report(SPEED_TABLE, caption="../report/speed.rst", category="Tables"),
        run=f"{SPEED_AT}/speed.json",
    log:
        f"{SPEED_LOGS}/speed.log",
    # All of them, and so nothing runs beside what is timed.
    threads: workflow.cores
    resources:
        gpu=1,
    params:
        pair=f"--from {SPEED_FROM} --to {SPEED_TO}",
        words=SPEED["words"],
        settings=json.dumps(
            {
                key: value
                for key, value in SPEED.items()
                if key not in ("corpus", "words", "merges")
            }
        ),
        seed=config["seed"],
    message:
        "Time a translator with each normaliser"
    shell:
        "replicate normalizer-speed --data $(dirname {input.data[0]}) {params.pair} --references {input.references}"
        " --words {params.words} --settings {params.settings:q} --seed {params.seed} --output {output.table} > {log} 2>&1"


TABLES["explicit_sparse/table25_speed"] = [SPEED_TABLE, f"{SPEED_AT}/speed.json"]
MEASURED += [SPEED_TABLE]
