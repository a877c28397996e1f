from snakemake.utils import min_version, validate

min_version("9.0")


# Only where --configfile names no profile: Snakemake merges config files key by key, and half of one profile in another is neither.
if "profile" not in config:

    configfile: "config/demo.yaml"


validate(config, "workflow/schemas/config.schema.yaml")


include: "workflow/rules/common.smk"
include: "workflow/rules/students.smk"


# The stages of each section that the profile has.
STAGES = {
    "masked_lm": ["corpus", "masked_lm", "analysis"],
    "translation": ["translation"],
    "char_lm": ["char_lm"],
    "forms": ["forms"],
    "normalizer_speed": ["normalizer_speed"],
    "scaling": ["scaling"],
}
for section, stages in STAGES.items():
    for stage in stages if section in config else []:

        include: f"workflow/rules/{stage}.smk"


if "blocks" in config.get("masked_lm", {}):

    include: "workflow/rules/blocks.smk"


include: "workflow/rules/notebooks.smk"
include: "workflow/rules/claims.smk"


rule all:
    default_target: True
    input:
        NOTEBOOKS,
        f"{RESULTS}/claims.csv",
