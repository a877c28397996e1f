"""What is learned from one layer's attention graphs, and measured on them."""


rule project:
    input:
        code=modules("projections"),
        graphs=f"{MASKED_LM}/graphs/train/layer{{layer}}.safetensors",
    output:
        f"{MASKED_LM}/projections/seed{{seed}}/layer{{layer}}.safetensors",
    log:
        f"{RESULTS}/logs/project/seed{{seed}}_layer{{layer}}.log",
    conda:
        "../../environment.yml"
    params:
        settings=json.dumps(SETTINGS["projection"]),
    shell:
        "sparselib project --graphs {input.graphs} --settings {params.settings:q} --seed {wildcards.seed}"
        " --output {output} 2>&1 | tee {log}"


rule cluster:
    input:
        code=modules(
            "centroids", "grids", "predictors/clustering", "predictors/routing"
        ),
        graphs=f"{MASKED_LM}/graphs/train/layer{{layer}}.safetensors",
        projection=rules.project.output,
    output:
        f"{MASKED_LM}/centroids/seed{{seed}}/layer{{layer}}.safetensors",
    log:
        f"{RESULTS}/logs/cluster/seed{{seed}}_layer{{layer}}.log",
    conda:
        "../../environment.yml"
    params:
        methods=METHODS,
        points=SETTINGS["cluster_points"],
    shell:
        "sparselib cluster --graphs {input.graphs} --projection {input.projection} --methods {params.methods:q}"
        " --points {params.points} --seed {wildcards.seed} --output {output} 2>&1 | tee {log}"


rule sweep:
    input:
        code=[*modules("sweep", "counting", "grids"), *PREDICTORS],
        graphs=f"{MASKED_LM}/graphs/valid/layer{{layer}}.safetensors",
        projection=rules.project.output,
        centroids=rules.cluster.output,
    output:
        f"{MASKED_LM}/sweep/seed{{seed}}/layer{{layer}}.parquet",
    log:
        f"{RESULTS}/logs/sweep/seed{{seed}}_layer{{layer}}.log",
    conda:
        "../../environment.yml"
    params:
        methods=METHODS,
        windows=WINDOWS,
        global_tokens=SETTINGS["global_tokens"],
    shell:
        "sparselib sweep --graphs {input.graphs} --projection {input.projection} --centroids {input.centroids}"
        " --methods {params.methods:q} {params.windows} --global-tokens {params.global_tokens}"
        " --seed {wildcards.seed} --output {output} 2>&1 | tee {log}"


rule coreference:
    input:
        code=modules("analysis"),
        graphs=f"{MASKED_LM}/graphs/valid/layer{{layer}}.safetensors",
        tokens=f"{MASKED_LM}/tokens/valid.safetensors",
    output:
        f"{MASKED_LM}/coreference/layer{{layer}}.csv",
    log:
        f"{RESULTS}/logs/coreference/layer{{layer}}.log",
    conda:
        "../../environment.yml"
    shell:
        "sparselib coreference --graphs {input.graphs} --tokens {input.tokens} --output {output} 2>&1 | tee {log}"


rule tags:
    input:
        code=modules("analysis"),
        graphs=f"{MASKED_LM}/graphs/valid/layer{{layer}}.safetensors",
        tokens=f"{MASKED_LM}/tokens/valid.safetensors",
        projection=f"{MASKED_LM}/projections/seed{SEEDS[0]}/layer{{layer}}.safetensors",
        centroids=f"{MASKED_LM}/centroids/seed{SEEDS[0]}/layer{{layer}}.safetensors",
    output:
        f"{MASKED_LM}/tags/layer{{layer}}.csv",
    log:
        f"{RESULTS}/logs/tags/layer{{layer}}.log",
    conda:
        "../../environment.yml"
    params:
        clusters=SETTINGS["tag_clusters"],
    shell:
        "sparselib tags --graphs {input.graphs} --tokens {input.tokens} --projection {input.projection}"
        " --centroids {input.centroids} --clusters {params.clusters} --output {output} 2>&1 | tee {log}"
