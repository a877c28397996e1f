"""Processor seconds of the workflow, stage by stage, how many of them went into imports, and the largest job: what
``workflow/resources.csv`` is written from.

Arguments are Snakemake's, for example ``--cores 2 --forceall --configfile config/smoke.yaml``. What has been made is not made
again without ``--forceall``. Imports are measured apart, once for each stage: every module that its processes can import.
"""

import json
import os
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from workflow.closure import PACKAGES, closure, notebook_closure  # noqa: E402  (after the line that it needs)

#: What jobs start, and with which argument they say what they do.
PROGRAMS = ("replicate", "papermill")
#: Stands for a program, runs it, and notes what it took.
SHIM = """#!{python} -IS
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(["{program}", *sys.argv[1:]])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
took = [used.ru_utime + used.ru_stime, time.perf_counter() - start, used.ru_maxrss / 1024]
with open("{notes}", "a") as file:
    file.write(json.dumps(["{name}", sys.argv[1:], took]) + "\\n")
sys.exit(done.returncode)
"""


def run_workflow(arguments: list[str]) -> list[tuple[str, list[str], tuple[float, float, float]]]:
    """Run Snakemake; program and arguments of each process that a job started: processor seconds, seconds, peak MiB."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes")
        for name in PROGRAMS:
            shim = Path(folder, name)
            shim.write_text(SHIM.format(python=sys.executable, program=shutil.which(name), notes=notes, name=name))
            shim.chmod(shim.stat().st_mode | stat.S_IXUSR)
        environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
        subprocess.run(["snakemake", *arguments], cwd=ROOT, env=environment, check=True)
        return [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []


def import_seconds(files: list[str]) -> float:
    """Processor seconds of a process that imports modules of this repository, and nothing else."""
    modules = [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in files]
    own = [name for name in modules if name.split(".")[0] in PACKAGES]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "".join(f"import {name}\n" for name in own)], cwd=ROOT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: list[str]) -> None:
    seconds, imported, largest = defaultdict(list), {}, defaultdict(lambda: (0.0, 0.0))
    for program, told, (used, took, peak) in run_workflow(arguments):
        if program == "replicate":
            name, files = told[0], closure(told[0])
        else:
            notebook = next(one for one in told if one.startswith("notebooks/"))
            name, files = notebook.removesuffix(".ipynb"), notebook_closure(notebook)
        seconds[name].append(used)
        largest[name] = (max(largest[name][0], took), max(largest[name][1], peak))
        if name not in imported:
            imported[name] = import_seconds(files)
    total, importing = sum(map(sum, seconds.values())), sum(len(seconds[name]) * imported[name] for name in seconds)
    print(f"{'':46}{'jobs':>6}{'seconds':>10}{'imports':>10}{'longest':>10}{'peak MiB':>10}")
    for name, used in sorted(seconds.items(), key=lambda item: -sum(item[1])):
        print(f"{name:46}{len(used):6}{sum(used):10.1f}{len(used) * imported[name]:10.1f}", end="")
        print(f"{largest[name][0]:10.1f}{largest[name][1]:10.0f}")
    print(f"{'all':46}{sum(map(len, seconds.values())):6}{total:10.1f}{importing:10.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
