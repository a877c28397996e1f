import time
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.utils import min_version, validate

from workflow.checks import problems
from workflow.ending import ending
from workflow.lock import AT_WORK, without_the_locks_of_the_dead

min_version("9.0")


# Only where --configfile names no profile: Snakemake merges config files key by key, and half of one profile in another is neither.
if "profile" not in config:

    configfile: "config/demo.yaml"


validate(config, "workflow/schemas/config.schema.yaml")
if found := problems(config):
    raise WorkflowError("The configuration cannot work:", *found)

# The terminal tells the minutes that are left from the last run of the same profile.
logger.info(f"Profile {config['profile']}", extra={"profile": config["profile"]})


# A job of its own on a node of a cluster is no run of its own.
if workflow.is_main_process:
    ALIVE = without_the_locks_of_the_dead(Path(".snakemake"))
shell.prefix(AT_WORK)
BEGAN = time.time()

SECTIONS = (
    "masked_lm translation char_lm forms captioning normalizer_speed scaling retrofit"
)
for name in [
    *["common", "factorised", "students"],
    *(section for section in SECTIONS.split() if section in config),
    *(["char_lm"] if "patterns" in config and "char_lm" not in config else []),
    *["checkpoints", "claims", "notebooks", "report", "archive"],
]:

    include: f"workflow/rules/{name}.smk"


rule all:
    default_target: True
    input:
        NOTEBOOKS,
        PICTURES,
        f"{RESULTS}/claims.csv",
        f"{RESULTS}/report.html",
    message:
        "All notebooks have run"


onstart:
    # Jobs on this machine need no limit of their rate. Snakemake's starts a timer for every job that ends, each of which has all
    # ready jobs looked at again and again; and a run that has ended waits for the last of them.
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


onsuccess:
    if said := ending(Path(RESULTS), BEGAN):
        print(said)
