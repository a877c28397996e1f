"""The stage that times attention against its length."""

from typing import Annotated

import typer

from replication.stages.options import Output, Seed, json_object


def scaling(
    settings: Annotated[
        dict, typer.Option(parser=json_object, help="arguments of scaling.measure and of its predictor")
    ],
    threads: Annotated[int, typer.Option(min=1, help="of the CPU")],
    seed: Seed,
    output: Output,
) -> None:
    """Time and memory of block-sparse entmax attention and its peers against n; on a GPU if there is one."""
    import torch

    from replication.files.storage import write_table
    from replication.timing.contenders import untrained_prediction
    from replication.timing.scaling import measure

    torch.set_num_threads(threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shared = {"seed": seed, "device": device}
    sizes = [settings[name] for name in ("heads", "dimension", "block")]
    predict = untrained_prediction(*sizes, **settings.pop("predictor"), **shared, compiled=device != "cpu")
    # Dense attention has no blocks, and a prediction by itself no attention.
    write_table(output, measure(**settings, **shared, predict=predict), may_be_empty=["density"])
