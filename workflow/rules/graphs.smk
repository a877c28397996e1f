"""Projections and centroids trained on a task's attention graphs, and the recall of predicted graphs."""

TASK = GraphTask(RESULTS / "{task}")


rule project:
    input:
        graphs=graphs_of("train"),
    output:
        [directory(TASK.projections(seed)) for seed in SEEDS],
    log:
        LOGS / "{task}" / "project.log",
    priority: 1
    resources:
        **needs("project"),
    params:
        code=closure_hash("project"),
        config=CONFIGURATION,
        settings=task_settings("projection"),
    message:
        "Train the projections of {wildcards.task}"
    shell:
        "replicate project {wildcards.task} --config {params.config} > {log} 2>&1"


rule cluster:
    input:
        graphs=graphs_of("train"),
        projections=[TASK.projections(seed) for seed in SEEDS],
    output:
        [directory(TASK.centroids(seed)) for seed in SEEDS],
    log:
        LOGS / "{task}" / "cluster.log",
    priority: 1
    resources:
        **needs("cluster"),
    params:
        code=closure_hash("cluster"),
        config=CONFIGURATION,
        settings=task_settings("methods", "cluster_points"),
    message:
        "Train the centroids of {wildcards.task}"
    shell:
        "replicate cluster {wildcards.task} --config {params.config} > {log} 2>&1"


rule sweep:
    input:
        graphs=graphs_of("valid"),
        projections=[TASK.projections(seed) for seed in SEEDS],
        centroids=[TASK.centroids(seed) for seed in SEEDS],
    output:
        [TASK.sweep(seed) for seed in SEEDS],
    log:
        LOGS / "{task}" / "sweep.log",
    resources:
        **needs("sweep"),
    params:
        code=closure_hash("sweep"),
        config=CONFIGURATION,
        settings=task_settings("methods", "windows", "global_tokens"),
    message:
        "Measure recall and sparsity of predicted graphs, {wildcards.task}"
    shell:
        "replicate sweep {wildcards.task} --config {params.config} > {log} 2>&1"
