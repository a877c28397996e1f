"""A run that is killed, whole or in part, at any moment: the next one goes on by itself and makes the same files.

``KILLS`` in the environment says how often; `make test-kills` asks for fifty.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_run import PROFILE, checkout

from workflow.lock import hold_profile

MODELS = ["block", "adaptive-span"]
KILLS = int(os.environ.get("KILLS", "6"))
#: Two models with their logs, and a table that needs neither: jobs of seconds, side by side and one after the other.
TARGETS = [
    f"results/{PROFILE}/char_lm/tiny/models/{model}/seed0/{file}"
    for model in MODELS
    for file in ("log.csv", "model.safetensors")
]
TARGETS += [f"results/{PROFILE}/factorised/reach.csv"]
#: The configuration is written when a run starts.
MADE = [*TARGETS, f"results/{PROFILE}/config.yaml"]


def start(folder: Path, **streams) -> subprocess.Popen:
    command = [sys.executable, "-m", "snakemake", *TARGETS, "--cores", "2", "--configfile", f"{PROFILE}.yaml"]
    environment = os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    # A shell without job control starts background jobs, such as this test run, with interrupts ignored.
    return subprocess.Popen(
        command, cwd=folder, env=environment, start_new_session=True, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **streams,
    )  # fmt: skip


def finish(folder: Path) -> str:
    """Run to the end; what it said."""
    done = start(folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said, _ = done.communicate(timeout=300)
    assert done.returncode == 0, said[-3000:]
    return said


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What a run makes that nobody killed."""
    folder = checkout(tmp_path_factory.mktemp("undisturbed") / "checkout")
    finish(folder)
    return {path: (folder / path).read_bytes() for path in MADE}


def workers(group: int) -> list[int]:
    """Processes of a run's jobs."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            own = os.getpgid(int(path.name)) == group
            said = (path / "cmdline").read_bytes()
        except (ProcessLookupError, FileNotFoundError):
            continue
        if own and b"replicate\0" in said:
            found.append(int(path.name))
    return found


def kill(run: subprocess.Popen, how: str, rng: random.Random) -> None:
    if how == "everything":
        os.killpg(run.pid, signal.SIGKILL)
    elif how == "the workflow alone":
        run.kill()
    elif at_work := workers(run.pid):
        try:
            os.kill(rng.choice(at_work), signal.SIGKILL)
        except ProcessLookupError:  # it has ended meanwhile
            pass
    run.wait()


def test_whatever_is_killed_the_next_run_goes_on_and_makes_the_same_files(tmp_path, undisturbed):
    rng, folder, killed, went_on = random.Random(0), checkout(tmp_path / "checkout"), 0, 0
    while killed < KILLS:
        run = start(folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if rng.random() < 0.7:  # most kills come when jobs run, however long a start takes
            while run.poll() is None and not any((folder / ".snakemake/locks").glob("*")):
                time.sleep(0.1)
        time.sleep(rng.uniform(0.0, 6.0))
        if run.poll() is None:
            kill(run, rng.choice(["everything", "everything", "the workflow alone", "a worker"]), rng)
            killed += 1
        elif all((folder / path).exists() for path in MADE):
            subprocess.run(["rm", "-rf", str(folder / "results")], check=True)
        went_on += "Removed the lock" in run.stderr.read()
    went_on += "Removed the lock" in finish(folder)
    assert {path: (folder / path).read_bytes() for path in MADE} == undisturbed
    assert [path for path in folder.rglob("*.partial*") if path.is_file()] == []
    assert went_on > 0 or KILLS < 5


def test_a_run_that_lives_is_not_disturbed(tmp_path):
    folder = checkout(tmp_path / "checkout")
    first = start(folder, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    while not any((folder / ".snakemake/locks").glob("*")):
        assert first.poll() is None
        time.sleep(0.1)
    second = start(folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said, _ = second.communicate(timeout=60)
    assert second.returncode != 0
    assert said == "error: another run is active in this folder; wait until it has ended, or run in another checkout\n"
    assert "Removed the lock" not in said
    assert first.poll() is None
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert "Removed the lock" in finish(folder)


def test_a_second_run_of_a_profile_is_refused_even_without_snakemakes_lock(tmp_path):
    """Snakemake's locks are gone as soon as a run of another profile ends."""
    with hold_profile(tmp_path, "demo"):
        with pytest.raises(BlockingIOError, match="profile demo: another run of it is active in this folder; wait"):
            hold_profile(tmp_path, "demo")
        hold_profile(tmp_path, "smoke").close()
    hold_profile(tmp_path, "demo").close()


def test_an_interrupted_run_holds_its_profile_until_then_and_says_how_to_go_on(tmp_path):
    folder = checkout(tmp_path / "checkout")
    run = start(folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        while not (folder / f"results/{PROFILE}/char_lm/tiny/text/train.txt").exists():
            assert run.poll() is None
            time.sleep(0.1)
        with pytest.raises(BlockingIOError):
            hold_profile(folder / ".snakemake", PROFILE)
        time.sleep(1)
    finally:
        os.killpg(run.pid, signal.SIGINT)
    said, _ = run.communicate(timeout=60)
    assert said.endswith("\nInterrupted; run again to continue.\n")
    assert "Failed" not in said
    assert "Error" not in said
