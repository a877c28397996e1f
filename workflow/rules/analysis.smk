"""What the heads of the masked language model attend to, and what their clusters hold."""


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
