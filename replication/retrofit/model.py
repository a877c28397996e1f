"""The model that is made sparse: the encoder of a masked language model trained here, or one that comes in a package."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from transformers import AutoModel, PreTrainedModel

from replication.files.paths import PACKAGE, located
from replication.masked_lm.model import load_model


def load_encoder(name: str | Path) -> PreTrainedModel:
    """The encoder, whose output are its last hidden states.

    ``name`` is the folder of a masked language model that was trained here, :data:`PACKAGE` with a folder of an installed
    package, or a model of the hub or of any folder.

    Raises ``FileNotFoundError`` if there is none.
    """
    if str(name).startswith(PACKAGE) or not (Path(name) / "training.json").exists():
        model = _pretrained(str(name))
    else:
        model = load_model(name).base_model
    if torch.accelerator.is_available():
        model.to(torch.accelerator.current_accelerator())
    return model.eval()


def _pretrained(name: str) -> PreTrainedModel:
    try:
        return AutoModel.from_pretrained(located(name))
    except OSError as error:
        raise FileNotFoundError(f"{name}: no model there, nor on the hub ({error})") from error
    except SafetensorError as error:
        raise ValueError(f"{name}: its weights are truncated or damaged ({error})") from error
