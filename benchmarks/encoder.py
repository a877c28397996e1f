"""Time a whole encoder on a GPU, dense and over random blocks of tokens; print a JSON row per setting.

python benchmarks/encoder.py > benchmarks/results/encoder.jsonl

The encoder has BERT's base size and random weights in bfloat16, since its speed does not depend on the weights. Dense is
PyTorch's attention. All heads and layers visit the same blocks, and predicting blocks is not included. Without CUDA, the script
prints one line and exits with status 2.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import torch
from attention_peers import BLOCKS, TOKENS, random_mask
from gpu_clock import timed
from hardware import hardware
from torch import Tensor
from transformers import BertConfig, BertModel

from sparselib import Entmax
from sparselib.huggingface import use_attention
from sparselib.kernels import BlockMask

LENGTHS = (8192, 2048, 32_768)  # most important first, in case time runs out
SHARES = (0.1, 0.25, 0.5, 1.0)
ALPHAS = (1.5, 1.0)
BLOCK = BLOCKS[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="start no setting after this many seconds")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("benchmarks/encoder.py needs a CUDA device, and none is available")
        sys.exit(2)
    deadline = time.monotonic() + arguments.seconds
    print(json.dumps(hardware()), flush=True)
    for n in LENGTHS:
        for row in at_length(n):
            print(json.dumps(row), flush=True)
            if time.monotonic() > deadline:
                print(json.dumps({"stopped_early": True}))
                return


def at_length(n: int) -> Iterator[dict]:
    """Yield the rows of one length: dense, then each alpha and share, forward and with the backward pass."""
    batch = max(1, TOKENS // n)
    ids = torch.randint(30_000, (batch, n), generator=torch.Generator().manual_seed(0)).cuda()
    setting = {"n": n, "batch": batch, "block": BLOCK}
    model = encoder(n)
    for part, run in passes(model, ids).items():
        yield setting | {"attention": "sdpa", "alpha": 1.0, "share": 1.0, "part": part} | timed(run, captured=False)
    for alpha in ALPHAS:
        control = use_attention(model, Entmax(alpha))
        for share in SHARES:
            mask = random_mask(n, BLOCK, share, heads=1)
            around = partial(control.visiting, partial(every_layer, mask))
            for part, run in passes(model, ids, around).items():
                row = {"attention": "ours", "alpha": alpha, "share": share, "part": part}
                yield setting | row | timed(run, captured=False)


def every_layer(mask: BlockMask, *call: object) -> BlockMask:
    """Return the same blocks for each layer."""
    return mask


def encoder(n: int) -> BertModel:
    """Return an encoder of n positions with random weights, in evaluation mode, so that nothing is dropped."""
    torch.manual_seed(0)
    config = BertConfig(max_position_embeddings=n, attn_implementation="sdpa")
    return BertModel(config, add_pooling_layer=False).to("cuda", torch.bfloat16).eval()


def passes(
    model: BertModel, ids: Tensor, around: Callable[[], AbstractContextManager] = nullcontext
) -> dict[str, Callable]:
    """Return calls of the forward pass and of both passes, inside a context."""

    def forward() -> None:
        with torch.no_grad(), around():
            model(input_ids=ids)

    def both() -> None:
        with around():
            model(input_ids=ids).last_hidden_state.float().square().mean().backward()
        model.zero_grad(set_to_none=True)

    return {"forward": forward, "both": both}


if __name__ == "__main__":
    main()
