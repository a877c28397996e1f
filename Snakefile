from snakemake.utils import min_version, validate

min_version("9.0")


# Only where --configfile names no profile: Snakemake merges config files key by key, and half of one profile in another is neither.
if "profile" not in config:

    configfile: "config/demo.yaml"


validate(config, "workflow/schemas/config.schema.yaml")


include: "workflow/rules/common.smk"
include: "workflow/rules/factorised.smk"
include: "workflow/rules/students.smk"


# The sections that the profile has.
for section in "masked_lm translation char_lm forms normalizer_speed scaling retrofit".split():
    if section in config:

        include: f"workflow/rules/{section}.smk"


include: "workflow/rules/checkpoints.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/notebooks.smk"


rule all:
    default_target: True
    input:
        NOTEBOOKS,
        PICTURES,
        f"{RESULTS}/claims.csv",
    message:
        "All notebooks have run"
