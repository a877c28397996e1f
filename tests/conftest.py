"""Offline and on one thread, with Triton's interpreter where there is no GPU."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # transformers and datasets read it when they are imported

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # triton reads it when it is imported

torch.set_num_threads(1)
