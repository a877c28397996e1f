"""A model with sparsified heads, saved beside its weights and bound to them by a hash."""

import hashlib
import json
import os
from contextlib import AbstractContextManager, ExitStack
from contextvars import ContextVar
from dataclasses import asdict
from pathlib import Path
from typing import Self

import torch
from safetensors.torch import load, save
from torch import Tensor, nn
from transformers import PreTrainedModel

from sparselib.control import AttentionControl, LayerCall
from sparselib.graphs import PredictedGraph
from sparselib.huggingface.attention import check_model, restored_on_error, use_attention
from sparselib.huggingface.blocks import visited_blocks
from sparselib.huggingface.heads import Setting, per_head
from sparselib.huggingface.layers import Inputs, Layer
from sparselib.huggingface.report import HeadReport, Report
from sparselib.normalizers import Entmax
from sparselib.projections import Projection

FORMAT = 1
DESCRIPTION, TENSORS = "sparsified.json", "sparsified.safetensors"
#: The open ``with`` blocks of this thread or task, and what closes them.
_ENTERED: ContextVar[tuple[tuple["Sparsified", ExitStack], ...]] = ContextVar("entered", default=())


class Sparsified(AbstractContextManager):
    """A model that attends only to predicted pairs inside a ``with`` block, and is unchanged outside.

    Made by :func:`sparselib.huggingface.sparsify` or :meth:`load`. The attribute `report` lists each head's predictor, and
    `control` is the control of the model's attention.

    Parameters
    ----------
    model : PreTrainedModel
    control : AttentionControl
    layers : list of Layer
        Each layer's fitted tensors and the settings of its heads.
    report : Report
    alpha : float
        The alpha of the model's normaliser.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from transformers import RobertaConfig, RobertaModel
    >>> from sparselib.huggingface import sparsify
    >>> tiny = {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 99}
    >>> model = RobertaModel(RobertaConfig(**tiny)).eval()
    >>> batches = [{"input_ids": torch.randint(5, 99, (4, 12))} for _ in range(4)]
    >>> sparse = sparsify(model, batches, recall=0.5, confidence=0.5)
    >>> with TemporaryDirectory() as folder:
    ...     sparse.save(folder)
    ...     again = Sparsified.load(model, folder)
    >>> again.report == sparse.report
    True
    """

    def __init__(
        self, model: PreTrainedModel, control: AttentionControl, layers: list[Layer], report: Report, alpha: float
    ):
        self.report, self.control = report, control
        self._model, self._layers, self._alpha = model, layers, alpha
        self._graphs = [_graph(number, layers, model.device) for number in range(len(layers))]

    def __enter__(self) -> Self:
        stack = ExitStack()
        stack.enter_context(self.control.restricted_to(self.graph))
        _ENTERED.set((*_ENTERED.get(), (self, stack)))
        return self

    def __exit__(self, *error: object) -> None:
        entry = next(entry for entry in reversed(_ENTERED.get()) if entry[0] is self)
        _ENTERED.set(tuple(other for other in _ENTERED.get() if other is not entry))
        entry[1].close()

    def graph(self, call: LayerCall) -> Tensor:
        """Return the pairs ``Bool[B, H, Q, K]`` that a layer's call attends to inside a ``with`` block."""
        graph = self._graphs[call.layer]
        return call.visible if graph is None else graph(call)

    def to_blocks(self, size: int) -> AbstractContextManager:
        """Return a context manager in which the block-sparse kernel visits only blocks that contain a predicted pair.

        All pairs of these blocks attend, so recall can only grow. No step needs memory for each pair of tokens.

        Parameters
        ----------
        size : int
            Tokens per block, at least 1.

        Raises
        ------
        ValueError
            If `size` is below 1 or distances predict a head; sparsify with ``predictors=("kmeans", "window")``.
        """
        return self.control.visiting(visited_blocks(self._layers, size))

    def save(self, folder: str | Path) -> None:
        """Write ``sparsified.json`` and ``sparsified.safetensors``, each atomically.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {}
        for number, layer in enumerate(self._layers):
            if layer.projection is not None:
                tensors |= {f"{number}.weight": layer.projection.weight, f"{number}.bias": layer.projection.bias}
                tensors |= {f"{number}.clusters{count}": x for count, x in layer.centroids.items()}
        content = save({name: x.cpu().contiguous() for name, x in tensors.items()})
        description = {
            "format": FORMAT,
            "weights": hash_of_weights(self._model),
            "tensors": hashlib.sha256(content).hexdigest(),
            "alpha": self._alpha,
            "layers": [
                {
                    "causal": layer.causal,
                    "left_dense": layer.left_dense,
                    "heads": [asdict(head) for head in layer.chosen],
                }
                for layer in self._layers
            ],
            "report": asdict(self.report),
        }
        text = json.dumps(description | {"checksum": _checksum(description)}, indent=1)
        _replace(folder / TENSORS, content)
        _replace(folder / DESCRIPTION, text.encode())

    @classmethod
    def load(cls, model: PreTrainedModel, folder: str | Path, inputs: Inputs | None = None) -> Self:
        """Load the files of :meth:`save` for a model with the same weights.

        Parameters
        ----------
        model : PreTrainedModel
        folder : str or Path
        inputs : mapping of Tensors, optional
            As in :func:`sparselib.huggingface.use_attention`.

        Raises
        ------
        ValueError
            If a file was changed, has another format or belongs to other weights. The message names the file, and the model is
            unchanged.
        """
        check_model(model)
        folder = Path(folder)
        description = _read_description(folder / DESCRIPTION)
        content = (folder / TENSORS).read_bytes()
        if hashlib.sha256(content).hexdigest() != description["tensors"]:
            raise ValueError(f"{folder / TENSORS} was changed since it was saved; save it again")
        if hash_of_weights(model) != description["weights"]:
            raise ValueError(
                f"{folder / DESCRIPTION} belongs to other weights than those of this {type(model).__name__}; sparsify it again"
            )
        tensors = load(content)
        layers = []
        for number, entry in enumerate(description["layers"]):
            layer = Layer(entry["causal"], entry["left_dense"], chosen=[Setting(**head) for head in entry["heads"]])
            if not layer.left_dense:
                layer.projection = Projection(tensors[f"{number}.weight"], tensors[f"{number}.bias"])
                start = f"{number}.clusters"
                layer.centroids = {
                    int(key.removeprefix(start)): x for key, x in tensors.items() if key.startswith(start)
                }
            layers.append(layer)
        with restored_on_error(model):
            control = use_attention(model, Entmax(description["alpha"]), inputs)
            if control.layers != len(layers):
                raise ValueError(
                    f"`inputs` must reach the {len(layers)} layers of {folder / DESCRIPTION}, but reach {control.layers} layers"
                )
        report = description["report"]
        report = Report(**report | {"heads": [HeadReport(**head) for head in report["heads"]]})
        return cls(model, control, layers, report, description["alpha"])


def _graph(number: int, layers: list[Layer], device: torch.device) -> PredictedGraph | None:
    """Return one layer's graph, or None if all of its heads are dense."""
    layer = layers[number]
    if layer.projection is None or all(setting.family == "dense" for setting in layer.chosen):
        return None
    predictor = per_head(layer.chosen, layer.centroids)
    return PredictedGraph([layer.projection.to(device)] * len(layers), [predictor] * len(layers), causal=layer.causal)


def hash_of_weights(model: nn.Module) -> str:
    """Return the SHA-256 of the names, shapes and bytes of a model's parameters and buffers."""
    digest = hashlib.sha256()
    for name, x in sorted(model.state_dict().items()):
        digest.update(f"{name} {x.dtype} {tuple(x.shape)}".encode())
        digest.update(x.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _read_description(path: Path) -> dict:
    """Return the description in a file; raise ``ValueError`` if the file was changed or has another format."""
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        checksum = description.pop("checksum")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"{path} was changed since it was saved ({error}); save it again") from None
    if checksum != _checksum(description):
        raise ValueError(f"{path} was changed since it was saved; save it again")
    if description["format"] != FORMAT:
        raise ValueError(f"{path} must have format {FORMAT}, got {description['format']}; sparsify with this version")
    return description


def _checksum(description: dict) -> str:
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


def _replace(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    temporary = path.with_name(f"{path.name}.part")
    temporary.write_bytes(content)
    os.replace(temporary, path)
