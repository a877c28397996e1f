"""Time and memory of block-sparse attention and its peers against the length of the sequence."""


rule scaling:
    input:
        code=modules(
            "scaling",
            "timing",
            "contenders",
            "masked_attention",
            "normalizers",
            "entmax_rows",
            "block_graph",
            "chunks",
            "predictors/blocks",
            "masks/fixed_blocks",
        ),
        kernels=KERNELS,
    output:
        f"{RESULTS}/scaling.csv",
    log:
        f"{RESULTS}/logs/scaling.log",
    conda:
        "../../environment.yml"
    # All of them, and so nothing runs beside what is timed.
    threads: workflow.cores
    resources:
        gpu=1,
    params:
        settings=json.dumps(config["scaling"]),
        seed=config["seed"],
    shell:
        "replicate scaling --settings {params.settings:q} --threads {threads} --seed {params.seed} --output {output} 2>&1 | tee {log}"
