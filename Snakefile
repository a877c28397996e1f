from snakemake.utils import min_version, validate

min_version("9.0")


# Only where --configfile names no profile: Snakemake merges config files key by key, and half of one profile in another is neither.
if "profile" not in config:

    configfile: "config/demo.yaml"


validate(config, "workflow/schemas/config.schema.yaml")


include: "workflow/rules/common.smk"
include: "workflow/rules/students.smk"


if "masked_lm" in config:

    include: "workflow/rules/corpus.smk"
    include: "workflow/rules/masked_lm.smk"
    include: "workflow/rules/analysis.smk"

    if "blocks" in config["masked_lm"]:

        include: "workflow/rules/blocks.smk"


if "translation" in config:

    include: "workflow/rules/translation.smk"


if "scaling" in config:

    include: "workflow/rules/scaling.smk"


if "normalizer_speed" in config:

    include: "workflow/rules/normalizer_speed.smk"


include: "workflow/rules/notebooks.smk"
include: "workflow/rules/claims.smk"


rule all:
    default_target: True
    input:
        NOTEBOOKS,
        f"{RESULTS}/claims.csv",
