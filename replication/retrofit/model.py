"""Encoders to sparsify: masked language models trained by this project, or pretrained models."""

from pathlib import Path

from safetensors import SafetensorError
from transformers import AutoModel, PreTrainedModel

from replication.files.paths import PACKAGE, located
from replication.masked_lm.model import for_evaluation, load_model


def load_encoder(name: str | Path) -> PreTrainedModel:
    """Load an encoder, in evaluation mode, on the accelerator if there is one.

    Parameters
    ----------
    name : str or Path
        Folder of a masked language model trained by this project, :data:`PACKAGE` followed by a folder of an installed package,
        any other model folder, or a model on the hub.

    Returns
    -------
    PreTrainedModel
        The encoder, without a head.

    Raises
    ------
    FileNotFoundError
        If there is no such model.
    ValueError
        If its weights are truncated or damaged.
    """
    if str(name).startswith(PACKAGE) or not (Path(name) / "training.json").exists():
        model = _pretrained(str(name))
    else:
        model = load_model(name).base_model
    return for_evaluation(model)


def _pretrained(name: str) -> PreTrainedModel:
    try:
        return AutoModel.from_pretrained(located(name))
    except OSError as error:
        raise FileNotFoundError(f"{name}: must be a model folder or a model on the hub ({error})") from error
    except SafetensorError as error:
        raise ValueError(f"{name}: weights are truncated or damaged ({error})") from error
