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
    shell:
        "replicate project $(printf ' --graphs %s' {input.graphs}) --settings {params.settings:q} --seed {wildcards.seed}"
        " --output {output} 2>&1 | tee {log}"


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
    shell:
        "replicate cluster $(printf ' --graphs %s' {input.graphs}) $(printf ' --projection %s' {input.projections}/*)"
        " --methods {params.methods:q} --points {params.points} --seed {wildcards.seed} --output {output} 2>&1 | tee {log}"


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
    shell:
        "replicate sweep $(printf ' --graphs %s' {input.graphs}) $(printf ' --projection %s' {input.projections}/*)"
        " $(printf ' --centroids %s' {input.centroids}/*) --methods {params.methods:q} {params.windows}"
        " --global-tokens {params.global_tokens} --seed {wildcards.seed} --output {output} 2>&1 | tee {log}"
