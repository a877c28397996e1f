"""The smoke profile through Slurm: daemons on this machine, a job and then the node's daemon killed, tables as a local run's.

``make test-cluster``, as root, where Debian's ``slurm-wlm`` and ``munge`` are installed. The node has two GPUs that are not
there: what counts is that they are asked for and given.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/workflow"))
from tiny_run import READ  # noqa: E402

PLUGINS = ["snakemake-executor-plugin-slurm==2.8.0", "snakemake-executor-plugin-slurm-jobstep==0.6.1"]
DAEMONS = ["munged", "slurmctld", "slurmd"]
#: Where Slurm's programs look for these.
SYSTEM, CONFIGURED = Path("/etc/slurm"), ("slurm.conf", "gres.conf")
CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ctld}
SlurmdPort={d}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
MinJobAge=3600
SlurmdTimeout=20
MailProg=/bin/true
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory={memory} Gres=gpu:2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def slurmd(folder: Path) -> subprocess.Popen:
    return subprocess.Popen(["slurmd", "-D", "-f", str(folder / "slurm.conf")], start_new_session=True)


@contextmanager
def cluster(folder: Path):
    """Daemons of a cluster of one node; the one of the node, in a list so that it can be replaced."""
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    folder.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(random.randbytes(128))
    key.chmod(0o600)
    ctld, d = free_ports(2)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    (folder / "slurm.conf").write_text(
        CONFIG.format(
            host=socket.gethostname().split(".")[0],
            folder=folder,
            ctld=ctld,
            d=d,
            cores=os.cpu_count(),
            memory=memory * 9 // 10,
        )
    )
    # Any device will do: nothing computes on them.
    (folder / "gres.conf").write_text("Name=gpu File=/dev/zero\nName=gpu File=/dev/full\n")
    files = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
    started = [subprocess.Popen(["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *files])]
    while not (folder / "munge.socket").exists():
        assert started[0].poll() is None, "munged has ended"
        time.sleep(0.1)
    started.append(subprocess.Popen(["slurmctld", "-D", "-f", str(folder / "slurm.conf")]))
    node = [slurmd(folder)]
    # Jobs forget SLURM_CONF, and look here.
    for name in CONFIGURED:
        (SYSTEM / name).symlink_to(folder / name)
    try:
        deadline = time.monotonic() + 60
        while "idle" not in said("sinfo", "--noheader", "--format=%T"):
            assert time.monotonic() < deadline, "the node does not come up"
            time.sleep(0.5)
        yield node
    finally:
        for name in CONFIGURED:
            (SYSTEM / name).unlink()
        for process in [*node, *reversed(started)]:
            process.kill()
            process.wait()


def said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True).stdout


def checkout(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in READ:
        (folder / name).symlink_to(ROOT / name)
    return folder


def run(folder: Path, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "snakemake", *options, "--configfile", "config/smoke.yaml"]
    # Everything that is measured; figures and the ledger are made from it.
    command += ["--config", "checkpoints=False", f"node_cores={os.cpu_count()}", "--until", *RULES]
    return subprocess.Popen(
        command, cwd=folder, stdout=open(folder / "said.txt", "w"), stderr=subprocess.STDOUT, text=True
    )


RULES = """perplexity replace sweep coreference tags evaluate_blocks bleu decode measure_characters character_baselines
measure_rules sparsify factorised""".split()


def wait_for(condition, run: subprocess.Popen, what: str):
    while not (found := condition()):
        assert run.poll() is None, f"the run ended before {what}"
        time.sleep(0.5)
    return found


def processes_of_jobs(command: str = "") -> list[int]:
    """Of jobs that Slurm has started, those of a stage, or of any."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            told = (path / "cmdline").read_text()
            of_slurm = "SLURM_JOB_ID" in (path / "environ").read_text(errors="replace")
            if of_slurm and "/replicate\0" in told and command in told:
                found.append(int(path.name))
        except (FileNotFoundError, ProcessLookupError, PermissionError, UnicodeDecodeError):
            pass
    return found


def tables(folder: Path) -> dict[str, str]:
    """All tables of a run, digit by digit, but for seconds."""
    results, found = folder / "results/smoke", {}
    for path in sorted(path for pattern in ("*.csv", "*.parquet") for path in results.rglob(pattern)):
        if path.name == "learning.csv":  # has nothing else
            continue
        table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, dtype=str)
        found[str(path.relative_to(results))] = table[[name for name in table if "seconds" not in name]].to_csv()
    return found


def through_slurm(folder: Path) -> tuple[Path, str]:
    """Run all on a cluster that is disturbed; the checkout, and what its controller knows of the jobs."""
    os.environ["PYTHONPATH"] = str(folder / "plugins")
    remote = checkout(folder / "remote")
    with cluster(folder / "slurm") as node:
        # No accounts are kept here, so sacct knows nothing.
        options = ["--latency-wait", "15", "--slurm-status-command", "squeue", "--set-threads", *ONE_THREAD]
        slurm = run(remote, "--workflow-profile", "profiles/slurm", *options)
        job = wait_for(lambda: processes_of_jobs("train-masked-lm"), slurm, "a training began")[0]
        print("killed: a process of a training", flush=True)
        os.kill(job, signal.SIGKILL)
        wait_for(lambda: set(processes_of_jobs()) - {job}, slurm, "another job was at work")
        print("killed: the daemon of the node, and started again", flush=True)
        os.killpg(node[0].pid, signal.SIGKILL)
        node[0].wait()
        node[0] = slurmd(folder / "slurm")
        assert slurm.wait() == 0, (remote / "said.txt").read_text()[-3000:]
        return remote, said("scontrol", "show", "job", "--oneliner")


def main(folder: Path) -> None:
    missing = [name for name in DAEMONS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing or os.geteuid() != 0:
        sys.exit(f"needs root, and Debian's slurm-wlm and munge (missing: {', '.join(missing) or 'nothing'})")
    if found := [name for name in CONFIGURED if (SYSTEM / name).exists()]:
        sys.exit(f"{SYSTEM / found[0]} is there already: this machine belongs to a cluster")
    os.environ["PATH"] += ":/usr/sbin"
    os.environ["OMP_NUM_THREADS"] = "1"
    plugins = folder / "plugins"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(plugins), *PLUGINS]
    subprocess.run(install, check=True)
    local = checkout(folder / "local")
    # Threads change the last bits of a training, and on a cluster they are a job's own.
    assert run(local, "--cores", "2", "--set-threads", *ONE_THREAD).wait() == 0, (local / "said.txt").read_text()[
        -3000:
    ]
    began = time.monotonic()
    remote, gpus = through_slurm(folder)
    assert "gres:gpu:1" in gpus, "no job asked for a GPU"
    expected, found = tables(local), tables(remote)
    assert expected.keys() == found.keys(), expected.keys() ^ found.keys()
    differing = [name for name in expected if expected[name] != found[name]]
    assert not differing, f"differ from a local run's: {', '.join(differing)}"
    print(f"{len(found)} tables are those of a local run; {(time.monotonic() - began) / 60:.1f} minutes through Slurm")


ONE_THREAD = [f"{rule}=1" for rule in ("train_masked_lm", "perplexity", "extract")]

if __name__ == "__main__":
    main(Path(sys.argv[1]))
