"""Training in several processes, which torchrun starts: one per GPU, or on a CPU for tests."""

import os
import sys

#: What torchrun tells each process; one that it has not started is alone.
COUNT = int(os.environ.get("WORLD_SIZE", "1"))
INDEX = int(os.environ.get("RANK", "0"))


def is_first() -> bool:
    """Whether this is the process that writes what they have made together."""
    return INDEX == 0


def share(name: str, whole: int) -> int:
    """What falls to each of the processes, so that together they do what one would.

    Raises ``ValueError``, which names what was to be divided, if it leaves a remainder.
    """
    if whole % COUNT:
        raise ValueError(f"{name} {whole} cannot be divided among {COUNT} processes")
    return whole // COUNT


def start(count: int) -> None:
    """Begin this very command anew in so many processes; returns in each of them, and at once where one is enough."""
    if count > 1 and "WORLD_SIZE" not in os.environ:
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
        sys.stdout.flush()
        os.execv(sys.executable, [*torchrun, *sys.argv])


def see_one_gpu() -> None:
    """For a process that is alone: libraries train on every GPU that they see, with a larger batch."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")
    if COUNT == 1 and visible:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[0]
