"""A rule for every step that the configuration declares (replication/steps)."""

for step in STEPS:

    rule:
        name:
            step.name
        input:
            text=step.text(),
            pretrained=step.pretrained(),
            reads=list(step.reads),
        output:
            list(step.makes),
            [directory(folder) for folder in step.folders],
        log:
            LOGS / f"{step.name}.log",
        priority: step.priority
        threads: {"one": 1, "half": HALF, "all": CORES}[step.cores]
        resources:
            **needs(step.command),
        params:
            code=closure_hash(step.command, tuple(sorted(step.predictors))),
            config=CONFIGURATION,
            words=step.words,
            settings=step.sees,
            content=content_of(step.text()),
        message:
            step.message
        # How many processes or threads share the work changes no result, so it is no parameter.
        shell:
            "REPLICATE_GPUS={resources.gpu} REPLICATE_THREADS={threads} replicate {params.words:q} --config {params.config}"
            " > {log} 2>&1"
