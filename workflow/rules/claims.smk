"""What the papers claim, tested on what was measured."""


rule configuration:
    input:
        code=closure("configuration"),
    output:
        f"{RESULTS}/config.yaml",
    log:
        f"{RESULTS}/logs/configuration.log",
    resources:
        **needs("configuration"),
    params:
        # Where it runs makes it no other run.
        settings=json.dumps({key: config[key] for key in config if key not in CLUSTER}),
    message:
        "Write down the configuration"
    shell:
        "replicate configuration --settings {params.settings:q} --output {output} > {log} 2>&1"


rule claims:
    input:
        code=closure("claims"),
        claims="config/published/claims.csv",
        configuration=rules.configuration.output,
        data=MEASURED,
    output:
        f"{RESULTS}/claims.csv",
    log:
        f"{RESULTS}/logs/claims.log",
    resources:
        **needs("claims"),
    message:
        "Test the claims of the papers"
    shell:
        "replicate claims --published {input.claims} --results $(dirname {output}) --output {output} > {log} 2>&1"


TABLES["claims"] = [
    f"{RESULTS}/claims.csv",
    "config/published/claims.csv",
    *collect("reported/{run}/claims.csv", run=REPORTED),
]
