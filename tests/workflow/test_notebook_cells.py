"""Notebooks on measurements of a user's run: what was measured is reported, not asserted, and one length is enough."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest
from tiny_run import PROFILE, checkout

from replication.files.paths import ROOT


def executed(notebook: str, root) -> subprocess.CompletedProcess:
    """Run the code cells of a notebook on the results below a folder."""
    cells = json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_text())["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    environment = os.environ | {"REPLICATE_ROOT": str(root), "MPLBACKEND": "agg"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize(("lengths", "fewer_is_faster"), [((512,), True), ((512, 1024, 2048), False)])
def test_times_are_verdicts_and_one_length_is_enough(tmp_path, lengths, fewer_is_faster):
    rows = []
    for n in lengths:
        for what, density in [("block-sparse", 0.5), ("block-sparse", 1.0), ("dense-entmax", 1.0), ("sdpa", 1.0)]:
            seconds = n * 1e-6 * (density if fewer_is_faster else 2 - density)
            rows.append({"n": n, "density": density, "what": what, "pass": "forward+backward", "bytes": 1e8 * n * density} | {
                "seconds": seconds, "lower": seconds, "upper": seconds, "device": "cpu", "threads": 1, "torch": "2"
            })  # fmt: skip
    folder = tmp_path / "results/demo"
    folder.mkdir(parents=True)
    pd.DataFrame(rows).to_csv(folder / "scaling.csv", index=False)
    (folder / "config.yaml").write_text("profile: demo\n")
    kept = subprocess.run(["replicate", "keep", folder], env=os.environ | {"REPLICATE_ROOT": str(tmp_path)})
    assert kept.returncode == 0
    done = executed("sparsefinder/scaling", tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"fewer blocks take less time: {'yes' if fewer_is_faster else 'no'} (2 densities)" in done.stdout


STYLED = """
import matplotlib.pyplot as plt
from replication import plots
plots.use_style()
figure, axes = plt.subplots(figsize=(plots.TEXT, 3))
axes.set_title("$$ and $x_{$ are words")
axes.plot([1, 2], label="$y_{$")
axes.legend()
plots.save(figure, plots.style.Path("figures"), "figure")
"""


def test_a_users_matplotlibrc_changes_no_figure_and_words_are_no_formulas(tmp_path):
    found = []
    for name, settings in {
        "default": "",
        "own": "text.usetex: True\nfigure.autolayout: True\naxes.grid: True\n",
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "matplotlibrc").write_text(settings)
        environment = os.environ | {"MPLBACKEND": "agg", "MATPLOTLIBRC": str(folder / "matplotlibrc")}
        done = subprocess.run(
            [sys.executable, "-c", STYLED], cwd=folder, capture_output=True, text=True, env=environment
        )
        assert done.returncode == 0, done.stderr
        found.append((folder / "figures/figure.svg").read_bytes())
    assert found[0] == found[1]
    assert b"$$ and $x_{$ are words" in found[0]


@pytest.mark.parametrize("profile", ["2024"])
def test_profiles_that_look_like_numbers_and_kernels_of_the_same_name_disturb_nothing(tmp_path, profile):
    folder = checkout(tmp_path / "checkout")
    settings = (folder / f"{PROFILE}.yaml").read_text().replace(f"profile: {PROFILE}", f"profile: '{profile}'")
    (folder / "own.yaml").write_text(settings)
    kernel = tmp_path / "jupyter/kernels/python3"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(json.dumps({"argv": ["false"], "display_name": "other", "language": "python"}))
    notebook = f"results/{profile}/notebooks/factorised/fig03_strided.ipynb"
    command = [sys.executable, "-m", "snakemake", notebook, "--cores", "1", "--configfile", "own.yaml"]
    environment = os.environ | {"JUPYTER_PATH": str(tmp_path / "jupyter"), "REPLICATE_ROOT": str(folder)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    parameters = json.loads((folder / notebook).read_text())["metadata"]["papermill"]["parameters"]
    assert parameters == {"profile": profile}


def test_jobs_find_their_commands_in_an_environment_that_is_not_activated(tmp_path):
    folder = checkout(tmp_path / "checkout")
    notebook = f"results/{PROFILE}/notebooks/factorised/fig03_strided.ipynb"
    command = [sys.executable, "-m", "snakemake", notebook, "--cores", "1", "--configfile", f"{PROFILE}.yaml"]
    environment = os.environ | {"PATH": "/usr/bin:/bin", "REPLICATE_ROOT": str(folder)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / notebook).exists()
