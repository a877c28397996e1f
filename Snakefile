import sys
import time
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.utils import min_version, update_config

from replication.config import ConfigurationError

# Snakemake executes this file in its own namespace, where `parse` is the function that reads the rules.
from replication.config import parse as parse_profile
from replication.files.manifest import options_hash, write_plan
from replication.files.verification import prune_command, unplanned
from replication.stages.ledger import write_configuration
from workflow.ending import ending
from workflow.environment import (
    check_code,
    dated_in_the_future,
    name_foreign_settings,
)
from workflow.overrides import with_types
from workflow.lock import JOB_PREFIX, hold_profile, remove_stale_locks
from workflow.plan import foreign, lost, places, planned, untouchable

min_version("9.0")


# Only without --configfile: Snakemake merges config files key by key, which would mix two profiles.
if "profile" not in config:

    configfile: "config/demo.yaml"


update_config(
    config,
    {
        key: with_types(value)
        for key, value in workflow.config_settings.config.items()
        if isinstance(value, (dict, list))
    },
)
try:
    RUN = parse_profile(config)
except ConfigurationError as error:
    raise WorkflowError("Invalid configuration:", *error.problems) from None

if workflow.is_main_process:
    check_code(Path(workflow.basedir))
    name_foreign_settings()

# The logger plugin estimates the time left from the last run of the same profile.
logger.info(f"Profile {RUN.profile}", extra={"profile": RUN.profile})


# A job on a cluster node starts Snakemake again; only the main process takes the run's locks.
LOCKS = []
if workflow.is_main_process:
    LOCKS.append(remove_stale_locks(Path(".snakemake")))
shell.prefix(JOB_PREFIX)
START = time.time()
# Hashes of the configurations that this checkout has run the profile with.
KNOWN = Path(".snakemake", "configurations", RUN.profile)


include: "workflow/rules/common.smk"
include: "workflow/rules/steps.smk"
include: "workflow/rules/checkpoints.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/notebooks.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/archive.smk"


if problem := workflow.is_main_process and dated_in_the_future(own_files()):
    raise WorkflowError(problem)
if problem := workflow.is_main_process and foreign(RESULTS, DECISIVE, KNOWN):
    raise WorkflowError(problem)
try:
    LOST = lost(RESULTS, DECISIVE) if workflow.is_main_process else []
except FileNotFoundError as error:
    raise WorkflowError(str(error)) from None


rule all:
    default_target: True
    input:
        EXECUTED,
        PICTURES,
        RESULTS / "claims.csv",
        RESULTS / "report.html",
        # Other versions of this workflow may have planned other files.
        lost=lambda _: [
            path
            for path in LOST
            if any(rule.is_producer(str(path)) for rule in workflow.rules)
        ],
    message:
        "Finish the run"


onstart:
    if workflow.is_main_process:
        try:
            LOCKS.append(hold_profile(Path(".snakemake"), RUN.profile))
        except BlockingIOError as error:
            sys.exit(f"error: {error}")
    # Jobs read this file. If a rule wrote it, each new setting would make Snakemake plan that rule alone: it does not look for
    # changed parameters of jobs that depend on a job to run (9.27).
    jobs, waiting = list(workflow.dag.jobs), list(workflow.dag.needrun_jobs())
    plan = planned(jobs, RESULTS)
    if problem := workflow.touch and untouchable(RESULTS, plan):
        raise WorkflowError(problem)
    # Before the configuration, so that a run killed here can be continued with either one.
    KNOWN.parent.mkdir(exist_ok=True)
    with open(KNOWN, "a", encoding="utf-8") as known:
        print(options_hash(DECISIVE), file=known)
    write_configuration(RUN, CONFIGURATION)
    again = [] if workflow.touch else places(waiting, RESULTS)
    is_whole = any(job.rule.name == "all" for job in jobs)
    write_plan(RESULTS, plan, again, whole=is_whole)
    # No notebook could be drawn beside them.
    if is_whole and (left := unplanned(RESULTS)):
        raise WorkflowError(
            f"{left[0]}: does not belong to this configuration; {prune_command(RESULTS)}"
        )
    # Local jobs need no rate limit. Snakemake's limiter starts a timer for every finished job, and each timer makes the scheduler
    # check all ready jobs again. A finished run would also wait for the last timer.
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


onsuccess:
    if summary := ending(RESULTS, START):
        print(summary)
