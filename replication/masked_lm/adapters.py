"""Fine-tuning by low-rank adapters (LoRA, Hu et al. 2022): each linear map of the layers gets a summand of low rank.

A fine-tuned model is then its base, which a package has, and a file of a few MB.
"""

import hashlib
from pathlib import Path

from peft import LoraConfig
from peft.tuners.lora import LoraModel
from torch import nn
from transformers import PreTrainedModel

from replication.files.contents import load_weights
from replication.files.paths import located
from replication.files.storage import FormatError, read_header, read_tensors, write_tensors
from replication.masked_lm.model import ALPHA, in_head, load_pretrained
from replication.training import save_trained
from sparselib.huggingface.own_normalizer import keep_normalizer
from sparselib.normalizers import Entmax

KIND = "adapters"


def add_adapters(model: PreTrainedModel, rank: int) -> LoraModel:
    """Add an adapter to each linear map of the encoder, and freeze the map's own weights and the token embeddings.

    The vocabulary head without its matrix, biases and layer normalisations are trained themselves.

    Parameters
    ----------
    model : PreTrainedModel
        The model, which is changed.
    rank : int
        Rank of each adapter. The product is scaled by 2 (``lora_alpha = 2 * rank``).
    """
    maps = [name for name, part in model.named_modules() if isinstance(part, nn.Linear) and not in_head(model, name)]
    adapted = LoraModel(model, LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=maps), "default")
    matrix = model.get_output_embeddings().weight
    for name, weight in model.named_parameters():
        if weight is not matrix and (weight.ndim == 1 or in_head(model, name)):
            weight.requires_grad_(True)
    return adapted


def write_adapters(path: Path, model: PreTrainedModel, rank: int, base: str) -> None:
    """Write the weights that training changed, with the hash of the model that they belong to.

    Parameters
    ----------
    base : str
        Folder, or ``package:NAME/FOLDER``, of the model before training.
    """
    changed = {name: weight.detach() for name, weight in model.named_parameters() if weight.requires_grad}
    alpha = getattr(model.config, ALPHA, 1.5)
    write_tensors(path, changed, kind=KIND, rank=rank, base=base, base_hash=_hash(base), alpha=alpha)


def merge_adapters(adapters: Path, folder: Path, base: str | None = None) -> None:
    """Write the fine-tuned model to a folder: its base with the adapters added.

    Parameters
    ----------
    base : str, optional
        Name that the adapters must state for the model before training.

    Raises
    ------
    FormatError
        If the base is not the one that the adapters were trained for.
    FileNotFoundError
        If there is no such base.
    """
    header = read_header(adapters, kind=KIND)
    if base not in (None, header["base"]):
        raise FormatError(f"{adapters}: must have the base {base}, got {header['base']}")
    base = header["base"]
    if (actual := _hash(base)) != header["base_hash"]:
        raise FormatError(f"{base}: must be the model with hash {header['base_hash'][:16]}, got {actual[:16]}")
    model = load_pretrained(base, seed=0)
    adapted = add_adapters(model, header["rank"])
    weights = read_tensors(adapters, kind=KIND)
    expected = {name for name, weight in model.named_parameters() if weight.requires_grad}
    if expected != weights.keys():
        raise FormatError(f"{adapters}: does not fit {base}: {', '.join(sorted(expected ^ weights.keys())[:3])}")
    load_weights(model, adapters, weights, strict=False)
    adapted.merge_and_unload()
    # Shipped adapters from before this key have 1.5-entmax.
    alpha = header.get("alpha", 1.5)
    setattr(model.config, ALPHA, alpha)
    keep_normalizer(model.config, Entmax(alpha), model.config.num_hidden_layers)
    save_trained(model, folder)


def _hash(base: str) -> str:
    return hashlib.sha256(Path(located(base), "model.safetensors").read_bytes()).hexdigest()
