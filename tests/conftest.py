"""Offline and on one thread, with Triton's interpreter where there is no GPU."""

import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # transformers and datasets read it when they are imported

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # triton reads it when it is imported

torch.set_num_threads(1)


def pytest_collection_modifyitems(items):
    """Tests that run whole workflows first: started last, they would leave one worker alone with them."""
    slow = Path(__file__).with_name("workflow")
    items.sort(key=lambda item: not item.path.is_relative_to(slow))
