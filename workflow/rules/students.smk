"""What is learned from a task's attention graphs, layer by layer, and measured on them."""


rule project:
    input:
        code=closure("project"),
        graphs=per_layer(f"{RESULTS}/{{task}}/graphs/train/layer{{layer}}.safetensors"),
    output:
        directory(f"{RESULTS}/{{task}}/projections/seed{{seed}}"),
    log:
        f"{RESULTS}/logs/{{task}}/project/seed{{seed}}.log",
    params:
        settings=setting("projection"),
    message:
        "Learn projections of {wildcards.task}, seed {wildcards.seed}"
    shell:
        "replicate project $(printf ' --graphs %s' {input.graphs}) --settings {params.settings:q} --seed {wildcards.seed}"
        " --output {output} > {log} 2>&1"


rule cluster:
    input:
        code=closure("cluster"),
        graphs=per_layer(f"{RESULTS}/{{task}}/graphs/train/layer{{layer}}.safetensors"),
        projections=rules.project.output,
    output:
        directory(f"{RESULTS}/{{task}}/centroids/seed{{seed}}"),
    log:
        f"{RESULTS}/logs/{{task}}/cluster/seed{{seed}}.log",
    params:
        methods=setting("methods"),
        points=setting("cluster_points"),
    message:
        "Find centroids of {wildcards.task}, seed {wildcards.seed}"
    shell:
        "replicate cluster $(printf ' --graphs %s' {input.graphs}) $(printf ' --projection %s' {input.projections}/*)"
        " --methods {params.methods:q} --points {params.points} --seed {wildcards.seed} --output {output} > {log} 2>&1"


rule sweep:
    input:
        code=closure("sweep"),
        graphs=per_layer(f"{RESULTS}/{{task}}/graphs/valid/layer{{layer}}.safetensors"),
        projections=rules.project.output,
        centroids=rules.cluster.output,
    output:
        f"{RESULTS}/{{task}}/sweep/seed{{seed}}.parquet",
    log:
        f"{RESULTS}/logs/{{task}}/sweep/seed{{seed}}.log",
    params:
        methods=setting("methods"),
        windows=lambda wildcards: windows(TASKS[wildcards.task]["windows"]),
        global_tokens=setting("global_tokens"),
    message:
        "Measure recall and sparsity of predicted graphs of {wildcards.task}, seed {wildcards.seed}"
    shell:
        "replicate sweep $(printf ' --graphs %s' {input.graphs}) $(printf ' --projection %s' {input.projections}/*)"
        " $(printf ' --centroids %s' {input.centroids}/*) --methods {params.methods:q} {params.windows}"
        " --global-tokens {params.global_tokens} --seed {wildcards.seed} --output {output} > {log} 2>&1"
