"""Trained models: taken from checkpoints where there are some, and made into checkpoints."""

# Models of one text come together: a job for each would take longer to start than to copy.
TAKEN = {}
for folder, model in MODELS.items():
    section = Path(folder).parts[0]
    # One job trains all normalisers: without one checkpoint, none is taken.
    needed = (
        [other for other in MODELS if Path(other).parts[0] == section]
        if section == "normalizer_speed"
        else [folder]
    )
    if all(shipped(other) for other in needed):
        TAKEN.setdefault((section, model["made_from"]), []).append(folder)

for number, ((section, text), folders) in enumerate(TAKEN.items()):
    stage = MODELS[folders[0]]["stage"]

    rule:
        name:
            f"weights_{number}_{section}"
        input:
            code=closure("weights"),
            weights=expand(
                f"{CHECKPOINTS}/{{folder}}/{{file}}",
                folder=folders,
                file=["weights.safetensors", "made_by.json"],
            ),
            table=ancient(f"{CHECKPOINTS}/weights.csv"),
            text=text,
        output:
            expand(f"{RESULTS}/{{folder}}/{{file}}", folder=folders, file=LEFT[section]),
        log:
            f"{RESULTS}/logs/weights/{number}_{section}.log",
        priority: 3
        resources:
            **needs("weights"),
        params:
            checkpoints=lambda wildcards, input: Path(input.table).parent,
            models=" ".join(
                "--model "
                + quote(json.dumps({"name": folder, "run": MODELS[folder]["run"]}))
                for folder in folders
            ),
            text=texts(folders[0]),
            stage=stage,
            results=lambda wildcards, output, inner=len(Path(folders[0]).parts): Path(
                output[0]
            ).parents[inner],
        message:
            f"Take {len(folders)} of {section} from checkpoints"
        shell:
            "replicate weights --checkpoints {params.checkpoints} {params.models} {params.text}"
            ' --code "$(python -m workflow.closure {params.stage})" --output {params.results} > {log} 2>&1'

    # Attention forms have no rule that trains what has a checkpoint.
    if section != "forms":
        workflow.ruleorder(f"weights_{number}_{section}", stage.replace("-", "_"))


# By its name only: what it writes is another run's input.
rule ship:
    input:
        models=[f"{RESULTS}/{folder}/model.safetensors" for folder in MODELS],
        measured=[path for model in MODELS.values() for path in model["measured"]],
    log:
        f"{RESULTS}/logs/ship.log",
    resources:
        **needs("ship"),
    params:
        commands=" && ".join(command_that_ships(folder) for folder in MODELS),
    message:
        "Make checkpoints of all models"
    shell:
        "({params.commands}) > {log} 2>&1"
