"""CPU seconds of each workflow stage, the part spent on imports, and the largest job, for ``workflow/resources.csv``.

Arguments are passed to Snakemake, for example ``--cores 2 --forceall --configfile config/smoke.yaml``. Without ``--forceall``,
existing files are not made again. Imports are measured separately, once per stage, for all modules that its processes can
import.
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
from workflow.closure import PACKAGES, closure, notebook_closure  # noqa: E402  (needs the path above)

#: Programs that jobs start.
PROGRAMS = ("replicate", "papermill")
#: Replaces a program, runs it, and records its time and memory.
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
    """Run Snakemake and return each process's program, arguments, and CPU seconds, seconds and peak MiB."""
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
    """Return the CPU seconds of a process that only imports the given modules of this repository."""
    modules = [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in files]
    imports = [f"import {name}\n" for name in modules if name.split(".")[0] in PACKAGES]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "".join(imports)], cwd=ROOT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: list[str]) -> None:
    """Run the workflow and print a row per stage."""
    seconds, imported, largest = defaultdict(list), {}, defaultdict(lambda: (0.0, 0.0))
    for program, options, (cpu_seconds, elapsed, peak) in run_workflow(arguments):
        if program == "replicate":
            name, files = options[0], closure(options[0])
        else:
            notebook = next(option for option in options if option.startswith("notebooks/"))
            name, files = notebook.removesuffix(".ipynb"), notebook_closure(notebook)
        seconds[name].append(cpu_seconds)
        largest[name] = (max(largest[name][0], elapsed), max(largest[name][1], peak))
        if name not in imported:
            imported[name] = import_seconds(files)
    total, importing = sum(map(sum, seconds.values())), sum(len(seconds[name]) * imported[name] for name in seconds)
    print(f"{'':46}{'jobs':>6}{'CPU s':>10}{'imports':>10}{'longest':>10}{'peak MiB':>10}")
    for name, values in sorted(seconds.items(), key=lambda item: -sum(item[1])):
        print(f"{name:46}{len(values):6}{sum(values):10.1f}{len(values) * imported[name]:10.1f}", end="")
        print(f"{largest[name][0]:10.1f}{largest[name][1]:10.0f}")
    print(f"{'all':46}{sum(map(len, seconds.values())):6}{total:10.1f}{importing:10.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
