"""The run's configuration, which jobs read and the ledger's premises refer to."""

from replication.stages.ledger import WHERE_IT_RUNS, write_configuration


localrules:
    configuration,


rule configuration:
    output:
        CONFIGURATION,
    log:
        LOGS / "configuration.log",
    params:
        settings={
            key: value
            for key, value in RUN.given().items()
            if key not in WHERE_IT_RUNS
        },
    message:
        "Write the configuration"
    run:
        write_configuration(RUN, Path(output[0]))
