"""What is learned from one layer's attention graphs, and measured on them."""


rule project:
    input:
        code=modules("projections"),
        graphs=f"{RESULTS}/{{task}}/graphs/train/layer{{layer}}.safetensors",
    output:
        f"{RESULTS}/{{task}}/projections/seed{{seed}}/layer{{layer}}.safetensors",
    log:
        f"{RESULTS}/logs/{{task}}/project/seed{{seed}}_layer{{layer}}.log",
    conda:
        "../../environment.yml"
    params:
        settings=setting("projection"),
    shell:
        "sparselib project --graphs {input.graphs} --settings {params.settings:q} --seed {wildcards.seed}"
        " --output {output} 2>&1 | tee {log}"


rule cluster:
    input:
        code=modules(
            "centroids", "grids", "predictors/clustering", "predictors/routing"
        ),
        graphs=f"{RESULTS}/{{task}}/graphs/train/layer{{layer}}.safetensors",
        projection=rules.project.output,
    output:
        f"{RESULTS}/{{task}}/centroids/seed{{seed}}/layer{{layer}}.safetensors",
    log:
        f"{RESULTS}/logs/{{task}}/cluster/seed{{seed}}_layer{{layer}}.log",
    conda:
        "../../environment.yml"
    params:
        methods=setting("methods"),
        points=setting("cluster_points"),
    shell:
        "sparselib cluster --graphs {input.graphs} --projection {input.projection} --methods {params.methods:q}"
        " --points {params.points} --seed {wildcards.seed} --output {output} 2>&1 | tee {log}"


rule sweep:
    input:
        code=[*modules("sweep", "counting", "grids"), *PREDICTORS],
        graphs=f"{RESULTS}/{{task}}/graphs/valid/layer{{layer}}.safetensors",
        projection=rules.project.output,
        centroids=rules.cluster.output,
    output:
        f"{RESULTS}/{{task}}/sweep/seed{{seed}}/layer{{layer}}.parquet",
    log:
        f"{RESULTS}/logs/{{task}}/sweep/seed{{seed}}_layer{{layer}}.log",
    conda:
        "../../environment.yml"
    params:
        methods=setting("methods"),
        windows=lambda wildcards: windows(TASKS[wildcards.task]["windows"]),
        global_tokens=setting("global_tokens"),
    shell:
        "sparselib sweep --graphs {input.graphs} --projection {input.projection} --centroids {input.centroids}"
        " --methods {params.methods:q} {params.windows} --global-tokens {params.global_tokens}"
        " --seed {wildcards.seed} --output {output} 2>&1 | tee {log}"
