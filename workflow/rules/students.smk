"""What is learned from a task's attention graphs, layer by layer, and measured on them."""


rule project:
    input:
        code=closure("project"),
        graphs=per_layer(f"{RESULTS}/{{task}}/graphs/train/layer{{layer}}.safetensors"),
    output:
        projections=[
            directory(f"{RESULTS}/{{task}}/projections/seed{seed}") for seed in SEEDS
        ],
    log:
        f"{RESULTS}/logs/{{task}}/project.log",
    priority: 1
    resources:
        **needs("project"),
    params:
        settings=setting("projection"),
        seeds=as_seeds(SEEDS),
    message:
        "Learn projections of {wildcards.task}"
    shell:
        "replicate project $(printf ' --graphs %s' {input.graphs}) --settings {params.settings:q} {params.seeds}"
        " --output $(dirname {output.projections[0]}) > {log} 2>&1"


rule cluster:
    input:
        code=closure("cluster"),
        graphs=per_layer(f"{RESULTS}/{{task}}/graphs/train/layer{{layer}}.safetensors"),
        projections=rules.project.output.projections,
    output:
        centroids=[
            directory(f"{RESULTS}/{{task}}/centroids/seed{seed}") for seed in SEEDS
        ],
    log:
        f"{RESULTS}/logs/{{task}}/cluster.log",
    priority: 1
    resources:
        **needs("cluster"),
    params:
        methods=setting("methods"),
        points=setting("cluster_points"),
        seeds=as_seeds(SEEDS),
    message:
        "Find centroids of {wildcards.task}"
    shell:
        "replicate cluster $(printf ' --graphs %s' {input.graphs}) --projections $(dirname {input.projections[0]})"
        " --methods {params.methods:q} --points {params.points} {params.seeds} --output $(dirname {output.centroids[0]}) > {log} 2>&1"


rule sweep:
    input:
        code=closure("sweep"),
        graphs=per_layer(f"{RESULTS}/{{task}}/graphs/valid/layer{{layer}}.safetensors"),
        projections=rules.project.output.projections,
        centroids=rules.cluster.output.centroids,
    output:
        tables=[f"{RESULTS}/{{task}}/sweep/seed{seed}.parquet" for seed in SEEDS],
    log:
        f"{RESULTS}/logs/{{task}}/sweep.log",
    resources:
        **needs("sweep"),
    params:
        methods=setting("methods"),
        windows=lambda wildcards: windows(TASKS[wildcards.task]["windows"]),
        global_tokens=setting("global_tokens"),
        seeds=as_seeds(SEEDS),
    message:
        "Measure recall and sparsity of predicted graphs of {wildcards.task}"
    shell:
        "replicate sweep $(printf ' --graphs %s' {input.graphs}) --projections $(dirname {input.projections[0]})"
        " --centroids $(dirname {input.centroids[0]}) --methods {params.methods:q} {params.windows}"
        " --global-tokens {params.global_tokens} {params.seeds} --output $(dirname {output.tables[0]}) > {log} 2>&1"
