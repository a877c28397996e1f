"""A model whose heads attend along predicted graphs while a block lasts; saved beside its weights, and bound to them."""

import hashlib
import json
import os
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Self

import torch
from safetensors.torch import load, save
from torch import Tensor, nn
from transformers import PreTrainedModel

from sparselib.control import AttentionControl, LayerCall
from sparselib.graphs import PredictedGraph
from sparselib.huggingface.attention import undone_by_an_error, use_attention
from sparselib.huggingface.blocks import visited_blocks
from sparselib.huggingface.heads import Setting, per_head
from sparselib.huggingface.layers import Inputs, Layer
from sparselib.huggingface.report import HeadReport, Report
from sparselib.normalizers import Entmax
from sparselib.projections import Projection

FORMAT = 1
DESCRIPTION, TENSORS = "sparsified.json", "sparsified.safetensors"


class Sparsified(AbstractContextManager):
    """Inside ``with``, the model attends along predicted graphs; outside, it is as it was.

    Made by :func:`sparselib.huggingface.sparsify` or :meth:`load`. ``report`` says what each head does; ``control`` is that of
    the model's attention.

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
        self._inside: list[ExitStack] = []

    def __enter__(self) -> Self:
        stack = ExitStack()
        stack.enter_context(self.control.restricted_to(self.graph))
        self._inside.append(stack)
        return self

    def __exit__(self, *error: object) -> None:
        self._inside.pop().close()

    def graph(self, call: LayerCall) -> Tensor:
        """Which pairs a layer's call attends along: what ``with`` restricts ``control`` to."""
        graph = self._graphs[call.layer]
        return call.visible if graph is None else graph(call)

    def to_blocks(self, size: int) -> AbstractContextManager:
        """Inside it, the block-sparse kernel visits the blocks of ``size`` tokens that hold a predicted pair, and no others.

        Every predicted pair is kept, and pairs of the same blocks are added: recall only grows. Nothing here has a number for
        each pair of tokens.

        Raises ``ValueError`` if a head is predicted by distances, which know no blocks: sparsify with
        ``predictors=("kmeans", "window")``.
        """
        return self.control.visiting(visited_blocks(self._layers, size))

    def save(self, folder: str | Path) -> None:
        """Write ``sparsified.json`` and ``sparsified.safetensors``: whole, or not at all."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {}
        for number, layer in enumerate(self._layers):
            if layer.projection is not None:
                tensors |= {f"{number}.weight": layer.projection.weight, f"{number}.bias": layer.projection.bias}
                tensors |= {f"{number}.clusters{count}": x for count, x in layer.centroids.items()}
        content = save({name: x.cpu().contiguous() for name, x in tensors.items()})
        described = {
            "format": FORMAT,
            "weights": hash_of_weights(self._model),
            "tensors": hashlib.sha256(content).hexdigest(),
            "alpha": self._alpha,
            "layers": [
                {"causal": layer.causal, "left_dense": layer.left_dense, "heads": [asdict(one) for one in layer.chosen]}
                for layer in self._layers
            ],
            "report": asdict(self.report),
        }
        text = json.dumps(described | {"checksum": _checksum(described)}, indent=1)
        _replace(folder / TENSORS, content)
        _replace(folder / DESCRIPTION, text.encode())

    @classmethod
    def load(cls, model: PreTrainedModel, folder: str | Path, inputs: Inputs | None = None) -> Self:
        """What :meth:`save` wrote, for the same weights.

        Raises ``ValueError``, naming the file, if anything in it was changed, it is of another format, or belongs to other
        weights; the model is then as it was. ``inputs`` are those of :func:`~sparselib.huggingface.attention.use_attention`.
        """
        folder = Path(folder)
        described = _described(folder / DESCRIPTION)
        content = (folder / TENSORS).read_bytes()
        if hashlib.sha256(content).hexdigest() != described["tensors"]:
            raise ValueError(f"{folder / TENSORS}: changed since it was saved")
        if hash_of_weights(model) != described["weights"]:
            raise ValueError(f"{folder / DESCRIPTION}: of other weights than those of this {type(model).__name__}")
        tensors = load(content)
        layers = []
        for number, one in enumerate(described["layers"]):
            layer = Layer(one["causal"], one["left_dense"], chosen=[Setting(**head) for head in one["heads"]])
            if not layer.left_dense:
                layer.projection = Projection(tensors[f"{number}.weight"], tensors[f"{number}.bias"])
                start = f"{number}.clusters"
                layer.centroids = {
                    int(key.removeprefix(start)): x for key, x in tensors.items() if key.startswith(start)
                }
            layers.append(layer)
        with undone_by_an_error(model):
            control = use_attention(model, Entmax(described["alpha"]), inputs)
            if control.layers != len(layers):
                raise ValueError(
                    f"{folder / DESCRIPTION}: of {len(layers)} layers; these inputs reach {control.layers} of this model"
                )
        told = described["report"]
        report = Report(**told | {"heads": [HeadReport(**head) for head in told["heads"]]})
        return cls(model, control, layers, report, described["alpha"])


def _graph(number: int, layers: list[Layer], device: torch.device) -> PredictedGraph | None:
    """That of one layer; None if all of its heads are dense."""
    layer = layers[number]
    if layer.projection is None or all(one.family == "dense" for one in layer.chosen):
        return None
    predictor = per_head(layer.chosen, layer.centroids)
    return PredictedGraph([layer.projection.to(device)] * len(layers), [predictor] * len(layers), causal=layer.causal)


def hash_of_weights(model: nn.Module) -> str:
    """SHA-256 of the names, shapes and bytes of a model's parameters and buffers."""
    found = hashlib.sha256()
    for name, x in sorted(model.state_dict().items()):
        found.update(f"{name} {x.dtype} {tuple(x.shape)}".encode())
        found.update(x.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def _described(path: Path) -> dict:
    """The description, if it is as it was written."""
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
        checksum = described.pop("checksum")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"{path}: changed since it was saved ({error})") from None
    if checksum != _checksum(described):
        raise ValueError(f"{path}: changed since it was saved")
    if described["format"] != FORMAT:
        raise ValueError(f"{path}: of format {described['format']}; this version reads {FORMAT}")
    return described


def _checksum(described: dict) -> str:
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f"{path.name}.part")
    temporary.write_bytes(content)
    os.replace(temporary, path)
