"""Trained models: taken from checkpoints where there are some, and made into checkpoints."""

for section, files in LEFT.items():
    of_section = [folder for folder in MODELS if Path(folder).parts[0] == section]
    taken = [folder for folder in of_section if shipped(folder)]
    # One job trains them all.
    if section == "normalizer_speed" and taken != of_section:
        taken = []
    if taken:

        rule:
            name:
                f"weights_{section}"
            input:
                code=closure("weights"),
                weights=f"{CHECKPOINTS}/{{trained}}/weights.safetensors",
                made_by=f"{CHECKPOINTS}/{{trained}}/made_by.json",
                table=ancient(f"{CHECKPOINTS}/weights.csv"),
                text=lambda wildcards: MODELS[wildcards.trained]["made_from"],
            output:
                [f"{RESULTS}/{{trained}}/{file}" for file in files],
            log:
                f"{RESULTS}/logs/weights/{{trained}}.log",
            wildcard_constraints:
                trained="|".join(taken),
            priority: 3
            params:
                checkpoints=lambda wildcards, input: Path(input.table).parent,
                folder=lambda wildcards, output: Path(output[0]).parent,
                run=lambda wildcards: json.dumps(MODELS[wildcards.trained]["run"]),
                text=lambda wildcards: texts(wildcards.trained),
                stage=lambda wildcards: MODELS[wildcards.trained]["stage"],
            message:
                "Take {wildcards.trained} from its checkpoint"
            shell:
                "replicate weights --checkpoints {params.checkpoints} --name {wildcards.trained} --run {params.run:q} {params.text}"
                ' --code "$(python -m workflow.closure {params.stage})" --output {params.folder} > {log} 2>&1'

        # The ruleorder statement knows no variables. Attention forms have no rule that trains what has a checkpoint.
        if section != "forms":
            workflow.ruleorder(
                f"weights_{section}", MODELS[taken[0]]["stage"].replace("-", "_")
            )


# By its name only: what it writes is another run's input.
rule ship:
    input:
        models=[f"{RESULTS}/{folder}/model.safetensors" for folder in MODELS],
        measured=[path for model in MODELS.values() for path in model["measured"]],
    log:
        f"{RESULTS}/logs/ship.log",
    params:
        commands=" && ".join(command_that_ships(folder) for folder in MODELS),
    message:
        "Make checkpoints of all models"
    shell:
        "({params.commands}) > {log} 2>&1"
