"""What the heads of the masked language model attend to, and what their clusters hold."""

VALID_GRAPHS = expand(
    f"{MASKED_LM}/graphs/valid/layer{{layer}}.safetensors", layer=MASKED_LM_LAYERS
)


rule coreference:
    input:
        code=closure("coreference"),
        graphs=VALID_GRAPHS,
        tokens=f"{MASKED_LM}/tokens/valid.safetensors",
    output:
        f"{MASKED_LM}/coreference.csv",
    log:
        f"{RESULTS}/logs/coreference.log",
    resources:
        **needs("coreference"),
    message:
        "Find heads that attend to coreferent tokens"
    shell:
        "replicate coreference $(printf ' --graphs %s' {input.graphs}) --tokens {input.tokens} --output {output} > {log} 2>&1"


rule tags:
    input:
        code=closure("tags"),
        graphs=VALID_GRAPHS,
        tokens=f"{MASKED_LM}/tokens/valid.safetensors",
        projections=f"{MASKED_LM}/projections/seed{SEEDS[0]}",
        centroids=f"{MASKED_LM}/centroids/seed{SEEDS[0]}",
    output:
        f"{MASKED_LM}/tags.csv",
    log:
        f"{RESULTS}/logs/tags.log",
    resources:
        **needs("tags"),
    params:
        clusters=SETTINGS["tag_clusters"],
    message:
        "Count the parts of speech in clusters"
    shell:
        "replicate tags $(printf ' --graphs %s' {input.graphs}) --tokens {input.tokens}"
        " $(printf ' --projection %s' {input.projections}/*) $(printf ' --centroids %s' {input.centroids}/*)"
        " --clusters {params.clusters} --output {output} > {log} 2>&1"


FIGURES["sparsefinder/fig05_coreference"] = (
    SENTENCES + SWEEPS + [f"{MASKED_LM}/coreference.csv"]
)
FIGURES["sparsefinder/fig06_parts_of_speech"] = [f"{MASKED_LM}/tags.csv"]
MEASURED += [f"{MASKED_LM}/coreference.csv", f"{MASKED_LM}/tags.csv"]
