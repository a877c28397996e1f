"""A text, a tokenizer and a model so small that training takes seconds; run as a script, it trains (to be killed)."""

import sys
from functools import cache
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForMaskedLM, PreTrainedTokenizerFast, RobertaForMaskedLM

from replication.corpora.bible import read_chapters
from replication.corpora.tokens import KIND, encode_blocks, save_tokenizer, train_tokenizer
from replication.files.storage import write_tensors
from replication.masked_lm.model import build_model
from replication.masked_lm.training import train

LENGTH = 16
STEPS = 24
ARCHITECTURE = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "tied_query_key": True,
    "sinusoidal_positions": True,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
TRAINING = {
    "mask_probability": 0.3,
    "max_steps": STEPS,
    "per_device_train_batch_size": 4,
    "learning_rate": 0.003,
    "logging_steps": 1,
    "save_steps": 5,
    "disable_tqdm": True,
}


@cache
def text() -> tuple[PreTrainedTokenizerFast, torch.Tensor]:
    """A tokenizer and blocks ``[N, 16]``."""
    documents = list(read_chapters(["Jonah"]))
    tokenizer = train_tokenizer(documents, vocab_size=300)
    return tokenizer, encode_blocks(documents, tokenizer, LENGTH)[0]["input_ids"]


def configured(folder: Path, model: dict[str, object] = ARCHITECTURE, **changes: object) -> Path:
    """Configure a run of these sizes, write its training sequences, and return the task's folder.

    Changes are about the training.
    """
    # Not above: the script below has its own folder in the path alone.
    from command_line import configure, list_files

    from profiles import MASKED_LM

    training = {key: value for key, value in TRAINING.items() if key != "disable_tqdm"} | changes
    section = MASKED_LM | {"length": LENGTH, "model": model, "training": training}
    results = configure(folder, masked_lm=section, checkpoints="checkpoints") / "masked_lm"
    tokenizer, input_ids = text()
    save_tokenizer(tokenizer, results / "tokenizer")
    write_tensors(results / "tokens/train.safetensors", {"input_ids": input_ids}, kind=KIND)
    list_files(results)
    return results


def network(tokenizer: PreTrainedTokenizerFast, seed: int = 0, **changes: object) -> RobertaForMaskedLM:
    return build_model(tokenizer, LENGTH, seed, **(ARCHITECTURE | changes))


def peaked(tokenizer: PreTrainedTokenizerFast, **changes: object) -> RobertaForMaskedLM:
    """A model with random weights so large that its heads are sparse."""
    model = network(tokenizer, **changes)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator), alpha=0.3)
    return model.eval()


def write_encoder(kind: str, folder: Path) -> Path:
    """Write a pretrained encoder of a type of transformers, with random weights so large that its heads are sparse."""
    tokenizer, _ = text()
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    sizes = {name: ARCHITECTURE[name] for name in names} | {"embedding_size": 16, "max_position_embeddings": 24}
    tokens = {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "bos", "eos", "cls", "sep")
    }
    torch.manual_seed(0)
    model = AutoModelForMaskedLM.from_config(AutoConfig.for_model(kind, vocab_size=len(tokenizer), **sizes, **tokens))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    model.save_pretrained(folder)
    return folder


def train_tiny(folder: Path, **changes: object) -> RobertaForMaskedLM:
    """Train for 24 steps, a checkpoint every fifth; ``dropout`` goes to the model, other changes to ``train``."""
    tokenizer, input_ids = text()
    input_ids = changes.pop("input_ids", input_ids)
    dropout = changes.pop("dropout", 0.0)
    model = network(tokenizer, hidden_dropout_prob=dropout)
    train(model, tokenizer, input_ids, folder, **({"seed": 0} | TRAINING | changes))
    return model


def assert_same_weights(model: torch.nn.Module, other: torch.nn.Module, rtol=1e-6, atol=1e-7) -> None:
    weights, others = dict(model.named_parameters()), dict(other.named_parameters())
    assert weights.keys() == others.keys()
    for name in weights:
        torch.testing.assert_close(weights[name], others[name], rtol=rtol, atol=atol)


if __name__ == "__main__":
    torch.set_num_threads(1)
    train_tiny(Path(sys.argv[1]), causal_steps=10_000, max_steps=int(sys.argv[2]))
