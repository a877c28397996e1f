"""Trained models: taken from checkpoints where there are some, and made into checkpoints."""


def taken():
    """Names of the models that come from checkpoints, by their section and by the text that they come with.

    Models of one text come together: a job for each would take longer to start than to copy.
    """
    found = {}
    for name, model in MODELS.items():
        section = Path(name).parts[0]
        # One job trains all normalisers: without one checkpoint, none is taken.
        together = (
            [other for other in MODELS if Path(other).parts[0] == section]
            if section == "normalizer_speed"
            else [name]
        )
        if all(shipped(other) for other in together):
            found.setdefault((section, model.made_from), []).append(name)
    return found


for number, ((section, _), names) in enumerate(taken().items()):
    models = [MODELS[name] for name in names]

    rule:
        name:
            f"weights_{number}_{section}"
        input:
            **job("weights"),
            weights=[
                Path(RUN.checkpoints, name, file)
                for name in names
                for file in ("weights.safetensors", "made_by.json")
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
            code=function_hash("weights"),
            settings=[model.run for model in models],
            names=names,
            stage=models[0].stage,
        message:
            f"Take {len(names)} of {section} from checkpoints"
        shell:
            "replicate weights {params.names} --config {input.config}"
            ' --code "$(python -m workflow.closure {params.stage})" > {log} 2>&1'

    # Attention forms have no rule that trains what has a checkpoint.
    if section != "forms":
        workflow.ruleorder(
            f"weights_{number}_{section}", models[0].stage.replace("-", "_")
        )


def shipping():
    """The command that makes a checkpoint of every model, one per stage."""
    of_stage = {}
    for name, model in MODELS.items():
        of_stage.setdefault(model.stage, []).append(name)
    return " && ".join(
        f"replicate ship {' '.join(names)} --config {CONFIGURATION} --checkpoints {RUN.checkpoints or 'checkpoints'}"
        f' --code "$(python -m workflow.closure {stage})"'
        for stage, names in of_stage.items()
    )


# By its name only: what it writes is another run's input.
rule ship:
    input:
        config=CONFIGURATION,
        models=[RESULTS / name / "model.safetensors" for name in MODELS],
        measured=[path for model in MODELS.values() for path in model.measured],
    log:
        LOGS / "ship.log",
    resources:
        **needs("ship"),
    params:
        commands=shipping(),
    message:
        "Make checkpoints of all models"
    shell:
        "({params.commands}) > {log} 2>&1"
