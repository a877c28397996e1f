"""Time and memory of block-sparse attention and its peers against the length of the sequence."""


rule scaling:
    input:
        code=closure("scaling"),
    output:
        f"{RESULTS}/scaling.csv",
    log:
        f"{RESULTS}/logs/scaling.log",
    # All of them, and so nothing runs beside what is timed.
    threads: CORES
    resources:
        **needs("scaling"),
    params:
        settings=json.dumps(config["scaling"]),
        seed=config["seed"],
    message:
        "Time attention against its length"
    shell:
        "replicate scaling --settings {params.settings:q} --threads {threads} --seed {params.seed} --output {output} > {log} 2>&1"


FIGURES["sparsefinder/scaling"] = [f"{RESULTS}/scaling.csv"]
