import time
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.utils import min_version

from replication.config import ConfigurationError

# Snakemake runs this file among its own names, and its `parse` reads the rules.
from replication.config import parse as parse_profile
from workflow.ending import ending
from workflow.lock import AT_WORK, without_the_locks_of_the_dead

min_version("9.0")


# Only where --configfile names no profile: Snakemake merges config files key by key, and half of one profile in another is neither.
if "profile" not in config:

    configfile: "config/demo.yaml"


try:
    RUN = parse_profile(config)
except ConfigurationError as error:
    raise WorkflowError("The configuration cannot work:", *error.problems) from None

# The terminal tells the minutes that are left from the last run of the same profile.
logger.info(f"Profile {RUN.profile}", extra={"profile": RUN.profile})


# A job of its own on a node of a cluster is no run of its own.
if workflow.is_main_process:
    ALIVE = without_the_locks_of_the_dead(Path(".snakemake"))
shell.prefix(AT_WORK)
BEGAN = time.time()


include: "workflow/rules/common.smk"
include: "workflow/rules/factorised.smk"
include: "workflow/rules/checkpoints.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/notebooks.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/archive.smk"


for name, chosen in {
    "masked_lm": RUN.masked_lm,
    "blocks": RUN.masked_lm and RUN.masked_lm.blocks,
    "translation": RUN.translation,
    "graphs": GRAPH_TASKS,
    "char_lm": SYMBOL_PLACES,
    "forms": RUN.forms,
    "captioning": RUN.captioning,
    "normalizer_speed": RUN.normalizer_speed,
    "scaling": RUN.scaling,
    "retrofit": RUN.retrofit,
}.items():
    if chosen:

        include: f"workflow/rules/{name}.smk"


rule all:
    default_target: True
    input:
        EXECUTED,
        PICTURES,
        RESULTS / "claims.csv",
        RESULTS / "report.html",
    message:
        "All notebooks have run"


onstart:
    # Jobs on this machine need no limit of their rate. Snakemake's starts a timer for every job that ends, each of which has all
    # ready jobs looked at again and again; and a run that has ended waits for the last of them.
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


onsuccess:
    if said := ending(RESULTS, BEGAN):
        print(said)
