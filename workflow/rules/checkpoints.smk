"""Import of trained models from checkpoints, and export of trained models as checkpoints."""

for number, ((section, _), names) in enumerate(IMPORTED.items()):
    models = [MODELS[name] for name in names]

    rule:
        name:
            f"weights_{number}_{section}"
        input:
            weights=[
                Path(RUN.checkpoints, name, file)
                for name in names
                for file in checkpoint_files(MODELS[name])
            ],
            table=ancient(Path(RUN.checkpoints, "weights.csv")),
            text=models[0].made_from,
        output:
            [RESULTS / model.name / file for model in models for file in model.files],
        log:
            LOGS / "weights" / f"{number}_{section}.log",
        priority: 3
        resources:
            **needs("weights"),
        params:
            code=closure_hash("weights"),
            config=CONFIGURATION,
            settings=[model.run for model in models],
            names=names,
            stage=models[0].stage,
        message:
            f"Import models from checkpoints: {section}, {len(names)}"
        shell:
            "replicate weights {params.names:q} --config {params.config}"
            ' --code "$(python -m workflow.closure {params.stage})" > {log} 2>&1'


# No other rule needs the checkpoints, which are the input of another run: they are made only by `snakemake ship`.
rule ship:
    input:
        models=[RESULTS / name / "model.safetensors" for name in MODELS],
        measured=[path for model in MODELS.values() for path in model.measured],
    log:
        LOGS / "ship.log",
    resources:
        **needs("ship"),
    params:
        commands=ship_commands(),
    message:
        "Make checkpoints of all models"
    shell:
        "({params.commands}) > {log} 2>&1"
