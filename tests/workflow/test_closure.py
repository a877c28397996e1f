"""A result is made anew when anything that its process imports has changed, and when nothing else has."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from replication.config import load
from replication.files.paths import ROOT
from replication.predictors.starter import commands, start
from replication.stages import MODULE_OF
from replication.steps import steps
from workflow import closure as closures
from workflow.closure import LOCK, closure, closure_hash, notebook_closure, notebook_hash

HERE = Path(__file__).parent
#: But for the index, which has no code, and the tutorial, which belongs to no run.
NOTEBOOKS = set((ROOT / "notebooks").rglob("*.ipynb"))
NOTEBOOKS = sorted(NOTEBOOKS - {ROOT / f"notebooks/{name}.ipynb" for name in ("index", "tutorial")})
PACKAGES = ("kernels", "replication", "sparselib")
MODULES = sorted(str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
# An edit of each of them takes a plan, two seconds each: as few as differ in what follows from them, the lock among them.
EDITED = [LOCK, *MODULES[::90]]
IMPORTED_BY_CONFIGURATION_AND_STEPS = {
    f"replication/{name}.py"
    for name in (
        "corpora/__init__",
        "corpora/inputs",
        "files/__init__",
        "files/books",
        "files/encoders",
        "files/manifest",
        "files/packages",
        "files/paths",
        "files/texts",
        "files/verification",
        "predictors/__init__",
        "predictors/methods",
    )
}
#: Steps of the demo, by name.
STEPS = {step.name: step for step in steps(load(ROOT / "config/demo.yaml"))}
READ_STAGES = ("corpus", "sweep", "time-blocks", "train-forms", "claims")
READ_NOTEBOOKS = ("00_patterns", "sparsefinder/fig05_coreference")


def output_of(script: str, *arguments: str, folder: Path = ROOT) -> str:
    command = [sys.executable, str(folder / "tests/workflow" / script), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=importing(folder))
    assert done.returncode == 0, done.stderr
    return done.stdout


def importing(folder: Path) -> dict[str, str]:
    """Return an environment in which jobs import the code of a folder, as if it were installed."""
    return os.environ | {"PYTHONPATH": str(folder)}


def imports_of_stage(name: str) -> str:
    """Return every import in a stage's function and in the functions of its module that it calls."""
    module = f"replication/stages/{MODULE_OF[name.replace('-', '_')]}.py"
    functions = {
        node.name: node for node in ast.parse((ROOT / module).read_text()).body if isinstance(node, ast.FunctionDef)
    }
    waiting, found = [name.replace("-", "_")], {}
    while waiting:
        function = functions[waiting.pop()]
        found[function.name] = [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
        called = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} & functions.keys()
        waiting += called - found.keys()
    return "\n".join(ast.unparse(node) for nodes in found.values() for node in nodes)


def without_choosing(paths: list[str]) -> list[str]:
    """Leave out modules that choose settings and paths, which rules pass as parameters and declare."""
    folders = [module.replace(".", "/") for module in closures.CHOOSING]
    return [
        path
        for path in paths
        if not path.startswith(tuple(f"{folder}{end}" for folder in folders for end in ("/", ".py")))
    ]


def imports_of_notebook(name: str) -> str:
    cells = json.loads((ROOT / f"notebooks/{name}.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if "outputs" in cell]
    statements = [
        node for cell in code for node in ast.parse(cell).body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    return "\n".join(map(ast.unparse, statements))


@pytest.fixture(scope="module")
def read() -> dict[str, list[str]]:
    """Files that a process reads, by the name of a stage or notebook; of all at once, since torch is slow to import."""
    code = {name: imports_of_stage(name) for name in READ_STAGES}
    code |= {name: imports_of_notebook(name) for name in READ_NOTEBOOKS}
    lines = output_of("imports.py", *code.values()).splitlines()
    return dict(zip(code, map(json.loads, lines), strict=True))


@pytest.mark.parametrize("stage", READ_STAGES)
def test_the_closure_of_a_stage_is_what_a_process_reads(read, stage):
    """Every function-level import included, as if all of them ran."""
    assert_same(read[stage], closure(stage))


@pytest.mark.parametrize("name", READ_NOTEBOOKS)
def test_the_closure_of_a_notebook_is_what_its_kernel_reads(read, name):
    assert_same(read[name], notebook_closure(f"notebooks/{name}.ipynb"))


def assert_same(found: list[str], expected: list[str]) -> None:
    """Modules that only the configuration and steps import may be read, too; they count where a stage uses them itself."""
    assert {LOCK, *without_choosing(found)} - {*expected} <= IMPORTED_BY_CONFIGURATION_AND_STEPS
    # A process reads the library that was compiled from these.
    sources = {source for of_module in closures.COMPILED.values() for source in of_module}
    assert {*expected} - sources <= {LOCK, *without_choosing(found)}


def test_an_edit_of_a_compiled_kernel_is_one_of_the_stages_that_compute_with_it():
    assert "kernels/support.cpp" in closure("evaluate-blocks")
    assert "kernels/support_tiles.h" in closure("evaluate-blocks")
    assert "kernels/support.cpp" not in closure("corpus")


def test_an_edit_of_a_function_is_an_edit_of_the_stages_that_use_it(tmp_path, monkeypatch):
    """The stages of a module do not rerun together."""
    shutil.copytree(ROOT / "replication/stages", tmp_path / "replication/stages")
    monkeypatch.setattr(closures, "ROOT", tmp_path)
    module = tmp_path / "replication/stages/graphs.py"
    commands = [function for function, of_module in MODULE_OF.items() if of_module == "graphs"]

    def hashes() -> dict[str, str]:
        closures.parsed.cache_clear()
        return {command: closures.function_hash(command) for command in commands}

    source, before = module.read_text(), hashes()
    for edited, expected in {
        "def sweep(": {"sweep"},
        "def _by_layer(": {"sweep", "coreference", "tags"},
        "# a comment": set(),
    }.items():
        head, _, tail = source.partition(edited)
        text = f"{source}\n{edited}\n" if edited.startswith("#") else f"{head}{edited}*changed, {tail}"
        module.write_text(text)
        assert {command for command, value in hashes().items() if value != before[command]} == expected
    module.write_text(source)
    assert hashes() == before
    monkeypatch.undo()
    closures.parsed.cache_clear()


def test_a_command_imports_its_own_module_only():
    ask = "typer.main.get_command(app).get_command(None, 'sweep')"
    script = f"import sys, typer; from replication.stages import app; {ask}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    stages = {name for name in loaded.split() if name.startswith("replication.stages.")}
    assert stages == {f"replication.stages.{name}" for name in ("graphs", "options")}


def test_a_name_that_a_package_imports_on_demand_is_followed():
    assert "sparselib/dense_attention.py" in closures.files(["sparselib.attention"])
    assert "sparselib/dense_attention.py" not in closures.files(["sparselib.pareto_front"])


def test_what_is_imported_by_path_exists():
    for importer, imported in closures.BY_PATH.items():
        assert closures.file_of(importer)
        assert all(map(closures.file_of, imported))


def test_no_import_is_hidden():
    """Except for the names that five packages import on first access, and predictors."""
    hidden = {
        path for path in MODULES if re.search(r"import_module|__import__|runpy|exec\(", (ROOT / path).read_text())
    }
    packages = ("replication/stages", "sparselib", "sparselib/huggingface", "sparselib/predictors")
    finding = ("replication/predictors/own_predictors.py", "replication/predictors/predictor_files.py")
    expected = {*finding, "sparselib/kernels.py", *(f"{name}/__init__.py" for name in packages)}
    assert hidden == expected


def test_a_kernel_that_no_stage_uses_changes_no_result():
    unused = "kernels/reference.py"
    assert unused in MODULES
    assert [stage for stage in MODULE_OF if unused in closure(stage.replace("_", "-"))] == []


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A copy of the repository in which Snakemake believes that the demo has run."""
    at = tmp_path_factory.mktemp("finished")
    kept = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, kept.stdout.split("\0")):
        if (ROOT / name).is_file() and not name.startswith("reported/"):
            (at / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, at / name)
    for job in json.loads(output_of("plans.py", folder=at)).values():
        for path in job["output"]:
            (at / path).parent.mkdir(parents=True, exist_ok=True)
            (at / path).mkdir() if path in job["folders"] else (at / path).touch()
    touch = [sys.executable, "-m", "snakemake", "--touch", "--forceall", "--cores", "1", "--quiet", "all"]
    subprocess.run(touch, cwd=at, capture_output=True, check=True, env=importing(at))
    return at


@pytest.fixture(scope="module")
def jobs(finished) -> dict[str, dict]:
    return json.loads(output_of("plans.py", folder=finished))


def test_every_job_asks_for_memory_and_minutes(jobs):
    asked = {name: job["asks"] for name, job in jobs.items() if job["command"]}
    assert len(asked) > 50
    assert [
        name for name, asks in asked.items() if not (asks["mem_mb"] and asks["runtime"]) or asks["gpu"] is None
    ] == []


def test_the_terminal_knows_the_seconds_of_every_rule(jobs):
    """Of the run that `make notebooks` stored: without one of them, no minutes are told."""
    known = set(json.loads((ROOT / "workflow/seconds/demo.json").read_text()))
    run = {name.split(" ")[0] for name in jobs}
    assert run - known == set()
    assert known - run <= {"archive"}  # not a part of a run; known once `make archive` was run


def words_of(command: str | None) -> list[str]:
    """The words of a job's command, from ``replicate`` on."""
    return (command or "").partition("replicate ")[2].split()


def code_of(name: str, command: str | None) -> list[str]:
    """What the process that a job starts depends on."""
    if not (words := words_of(command)):
        return []
    predictors = STEPS[name].predictors if name in STEPS else ()
    return notebook_closure(words[1]) if words[0] == "draw" else closure(words[0], predictors)


def stale(jobs: dict[str, dict], file: str) -> set[str]:
    """Jobs whose process imports the file, and all that need what they make."""
    found = {name for name, job in jobs.items() if file in code_of(name, job["command"])}
    while more := {name for name, job in jobs.items() if found & {*job["needs"]}} - found:
        found |= more
    return found


def test_a_job_depends_on_what_its_process_imports(jobs):
    assert len(jobs) > 100
    for name, job in jobs.items():
        if words := words_of(job["command"]):
            predictors = tuple(sorted(STEPS[name].predictors)) if name in STEPS else ()
            expected = notebook_hash(words[1]) if words[0] == "draw" else closure_hash(words[0], predictors)
            assert job["code"] == expected, name
        assert [path for path in job["input"] if path.endswith((".py", LOCK))] == []


#: Keys that decide which files there are, or how many a job makes.
AS_FILES = {"models_per_job"}


def test_every_key_of_the_configuration_is_a_parameter_of_some_job(jobs):
    """Otherwise a changed value would rerun nothing."""
    settings = yaml.safe_load((ROOT / "config/demo.yaml").read_text())
    passed = {key for job in jobs.values() for key in job["keys"]}
    # Names of sections, language pairs, corpora and models are keys, too.
    names = {*settings, *settings["patterns"], *settings["forms"], *settings["captioning"]["models"], "text"}
    for section in (settings["translation"], *settings["forms"].values(), settings["normalizer_speed"]):
        names |= section["corpus"].keys()
    for section in (settings["char_lm"], *settings["patterns"].values()):
        names |= section["corpora"].keys() | section["models"].keys()
    missing = keys_of(settings) - passed - names
    assert missing == AS_FILES


def keys_of(value: object) -> set[str]:
    if isinstance(value, dict):
        return {*value} | {key for inner in value.values() for key in keys_of(inner)}
    return {key for inner in value for key in keys_of(inner)} if isinstance(value, list) else set()


def test_every_notebook_is_run(jobs):
    """And opened by hand, it draws the figure of its name."""
    commands = [job["command"].split() for job in jobs.values() if (job["command"] or "").startswith("replicate draw ")]
    assert {command[2] for command in commands} == {
        str(path.relative_to(ROOT)) for path in NOTEBOOKS if ".ipynb_checkpoints" not in path.parts
    }
    for _, _, notebook, output, *options in commands:
        if output.endswith(notebook):
            cells = json.loads((ROOT / notebook).read_text())["cells"]
            (cell,) = (cell for cell in cells if "parameters" in cell["metadata"].get("tags", []))
            exec("".join(cell["source"]), defaults := {})
            told = dict(option.split("=") for option in options if "=" in option)
            assert told == {name: str(defaults[name]) for name in told}


def test_an_edit_plans_what_imports_the_file_and_what_follows_from_it(finished, jobs):
    plans = json.loads(output_of("plans.py", *EDITED, folder=finished))
    assert {file: set(plan) for file, plan in plans.items()} == {file: stale(jobs, file) for file in EDITED}
    assert plans[LOCK] == sorted(jobs)
    assert len({len(plan) for plan in plans.values()}) > 2  # not all or nothing


def following(jobs: dict[str, dict], first: set[str]) -> set[str]:
    """The first jobs to run again, all that need what they make, and what states the configuration."""
    expected = first | {"claims", "report"}
    while more := {name for name, job in jobs.items() if expected & {*job["needs"]}} - expected:
        expected |= more
    return expected


#: Settings of the demo with another value, at least one of each section, and the first jobs to run again.
SETTINGS = {
    "config/demo.yaml|counts: [2, 22]|counts: [2]": {"evaluate_blocks", "time_blocks"},
    "config/demo.yaml|  length: 128\n|  length: 120\n": {"tokenize__retrofit"},
    "config/demo.yaml|lengths: [512, 1024, 2048, 4096]|lengths: [512]": {"scaling"},
    "config/demo.yaml|tag_clusters: 8|tag_clusters: 32": {"tags"},
    "config/demo.yaml|threshold: [0.1, 0.2, |threshold: [0.1, ": {"sweep__masked_lm_sparsefinder_distance"},
    "config/demo.yaml|decoding: {beam: 1, |decoding: {beam: 2, ": {
        f"{command}__translation_{pair}" for command in ("bleu", "decode") for pair in ("grc_en", "kjv_en")
    },
    "config/demo.yaml|shown: 2|shown: 1": {"measure_captioners"},
    "config/demo.yaml|timed_steps: 7\n    sizes: {layers: 4, dimension: 64, heads: 4, inner: 128, dropout: 0.0}\n    models:\n"
    "      dense: {architecture: matrix_transformer, length: 65|timed_steps: 5\n    sizes: {layers: 4, dimension: 64, heads: 4,"
    " inner: 128, dropout: 0.0}\n    models:\n      dense: {architecture: matrix_transformer, length: 65": {
        "time_steps__patterns_images_digits"
    },
}


def test_a_changed_setting_plans_the_jobs_that_use_it_and_what_follows(finished, jobs):
    plans = json.loads(output_of("plans.py", *SETTINGS, folder=finished))
    for edit, first in SETTINGS.items():
        assert set(plans[edit]) == following(jobs, first), edit


def test_a_new_predictor_plans_its_steps_and_what_shows_judges_and_archives_it(finished, tmp_path_factory):
    """As `replicate init` adds it: a file, and a profile with a method and its comparison."""
    at = tmp_path_factory.mktemp("added") / "checkout"
    shutil.copytree(finished, at, symlinks=True)
    start("my-idea", at)
    _, figure, archive = (command.split()[1:] for command in commands("my-idea"))
    planned = {}
    for name, words in (("figure", figure), ("archive", archive)):
        command = [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "rules", *words]
        done = subprocess.run(command, cwd=at, capture_output=True, text=True, env=importing(at), check=True)
        counted = [line.split() for line in done.stdout.splitlines()]
        planned[name] = {words[0] for words in counted if len(words) == 2 and words[1].isdigit()}
    swept = "sweep__masked_lm_my_idea"
    assert planned["figure"] == {swept, "replace", "figure", "fig04", "total"}
    stored = "store_predictor__my_idea_py_MyIdea"
    of_figure = planned["figure"] - {"fig04"}
    assert planned["archive"] == of_figure | {stored, "claims", "table", "report", "archive"}


def test_fewer_student_seeds_measure_again_what_one_table_has_of_all_seeds(finished):
    edit = "config/demo.yaml|student_seeds: [0, 1, 2]|student_seeds: [0, 1]"
    plan = json.loads(output_of("plans.py", edit, folder=finished))[edit]
    assert {"measure_rules", "replace"} <= set(plan)
