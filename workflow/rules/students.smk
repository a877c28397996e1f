"""What is learned from one layer's attention graphs, and measured on them."""


rule project:
    input:
        code=modules("projections"),
        graphs=f"{MASKED_LM}/graphs/train/layer{{layer}}.safetensors",
    output:
        f"{MASKED_LM}/projections/seed{{seed}}/layer{{layer}}.safetensors",
    params:
        settings=json.dumps(SETTINGS["projection"]),
    conda:
        "../../environment.yml"
    shell:
        "sparselib project --graphs {input.graphs} --settings {params.settings:q} --seed {wildcards.seed}"
        " --output {output}"


rule cluster:
    input:
        code=modules("centroids", "grids", "predictors/clustering", "predictors/routing"),
        graphs=f"{MASKED_LM}/graphs/train/layer{{layer}}.safetensors",
        projection=rules.project.output,
    output:
        f"{MASKED_LM}/centroids/seed{{seed}}/layer{{layer}}.safetensors",
    params:
        methods=METHODS,
        points=SETTINGS["cluster_points"],
    conda:
        "../../environment.yml"
    shell:
        "sparselib cluster --graphs {input.graphs} --projection {input.projection} --methods {params.methods:q}"
        " --points {params.points} --seed {wildcards.seed} --output {output}"


rule sweep:
    input:
        code=[*modules("sweep", "counting", "grids"), *PREDICTORS],
        graphs=f"{MASKED_LM}/graphs/valid/layer{{layer}}.safetensors",
        projection=rules.project.output,
        centroids=rules.cluster.output,
    output:
        f"{MASKED_LM}/sweep/seed{{seed}}/layer{{layer}}.parquet",
    params:
        methods=METHODS,
        windows=WINDOWS,
        global_tokens=SETTINGS["global_tokens"],
    conda:
        "../../environment.yml"
    shell:
        "sparselib sweep --graphs {input.graphs} --projection {input.projection} --centroids {input.centroids}"
        " --methods {params.methods:q} {params.windows} --global-tokens {params.global_tokens}"
        " --seed {wildcards.seed} --output {output}"


rule coreference:
    input:
        code=modules("analysis"),
        graphs=f"{MASKED_LM}/graphs/valid/layer{{layer}}.safetensors",
        tokens=f"{MASKED_LM}/tokens/valid.safetensors",
    output:
        f"{MASKED_LM}/coreference/layer{{layer}}.csv",
    conda:
        "../../environment.yml"
    shell:
        "sparselib coreference --graphs {input.graphs} --tokens {input.tokens} --output {output}"


rule tags:
    input:
        code=modules("analysis"),
        graphs=f"{MASKED_LM}/graphs/valid/layer{{layer}}.safetensors",
        tokens=f"{MASKED_LM}/tokens/valid.safetensors",
        projection=f"{MASKED_LM}/projections/seed{SEEDS[0]}/layer{{layer}}.safetensors",
        centroids=f"{MASKED_LM}/centroids/seed{SEEDS[0]}/layer{{layer}}.safetensors",
    output:
        f"{MASKED_LM}/tags/layer{{layer}}.csv",
    params:
        clusters=SETTINGS["tag_clusters"],
    conda:
        "../../environment.yml"
    shell:
        "sparselib tags --graphs {input.graphs} --tokens {input.tokens} --projection {input.projection}"
        " --centroids {input.centroids} --clusters {params.clusters} --output {output}"
