"""A model with sparsified heads, saved beside its weights and bound to them and to its configuration."""

import json
from contextlib import AbstractContextManager, ExitStack
from contextvars import ContextVar
from dataclasses import asdict
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from sparselib.control import AttentionControl, CertifiedRows, LayerCall, TokenPairs
from sparselib.graphs import PredictedGraph
from sparselib.huggingface.attention import use_attention
from sparselib.huggingface.blocks import visited_blocks
from sparselib.huggingface.checked_model import check_model, restored_on_error
from sparselib.huggingface.heads import OWN, per_head
from sparselib.huggingface.layers import Inputs, Layer
from sparselib.huggingface.own_normalizer import normalizers, with_alpha
from sparselib.huggingface.probe import first_working_inputs, preserving_state
from sparselib.huggingface.report import Report
from sparselib.huggingface.saved import FILE, hash_of, layers_of, read, report_of, write
from sparselib.masks.visible import causal_and_lengths

#: Settings of a model that say where it comes from, how it is run or what else it returns, but do not change its output; and
#: its normaliser, which is saved by itself.
NO_EFFECT = {
    "_name_or_path",
    "architectures",
    "attn_implementation",
    "entmax_alpha",
    "dtype",
    "output_attentions",
    "output_hidden_states",
    "return_dict",
    "transformers_version",
    "use_cache",
}
#: The open ``with`` blocks of this thread or task, and what closes them.
_ENTERED: ContextVar[tuple[tuple["Sparsified", ExitStack], ...]] = ContextVar("entered", default=())


class Sparsified(AbstractContextManager):
    """A model that attends only to predicted pairs inside a ``with`` block, and is unchanged outside.

    Made by :func:`sparselib.huggingface.sparsify` or :meth:`load`. The attribute `report` lists each head's predictor,
    `control` is the control of the model's attention, and `model` the model.

    Parameters
    ----------
    model : PreTrainedModel
    control : AttentionControl
    layers : list of Layer
        Each layer's fitted tensors and the settings of its heads.
    report : Report
    alphas : list of float
        The alpha of each layer's normaliser, or a single one for all.

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
        self,
        model: PreTrainedModel,
        control: AttentionControl,
        layers: list[Layer],
        report: Report,
        alphas: list[float],
    ):
        self.report, self.control, self.model = report, control, model
        self._layers, self._alphas = layers, alphas
        self._graphs = [_graph(number, layers, model.device) for number in range(len(layers))]

    def __enter__(self) -> Self:
        stack = ExitStack()
        stack.enter_context(self.control.restricted_to(self.graph))
        _ENTERED.set((*_ENTERED.get(), (self, stack)))
        return self

    def install(self) -> None:
        """Attend only to predicted pairs in all threads of this process, as a server needs, until :meth:`uninstall`.

        A ``with`` block, on the other hand, concerns its own thread or task.
        """
        with self.control.around():
            self.control.mode = TokenPairs(graph=self.graph)

    def uninstall(self) -> None:
        """End :meth:`install`: outside ``with`` blocks, the model is unrestricted again."""
        self.control.mode = TokenPairs()

    def __exit__(self, *error: object) -> None:
        entry = next(entry for entry in reversed(_ENTERED.get()) if entry[0] is self)
        _ENTERED.set(tuple(other for other in _ENTERED.get() if other is not entry))
        entry[1].close()

    def graph(self, call: LayerCall) -> Tensor:
        """Return the pairs ``Bool[B, H, Q, K]`` that a layer's call attends to inside a ``with`` block."""
        graph = self._graphs[call.layer]
        return call.visible.expand(-1, call.q.shape[1], -1, -1) if graph is None else graph(call)

    def to_blocks(self, size: int, certify: bool = False) -> AbstractContextManager[CertifiedRows | None]:
        """Return a context manager in which the block-sparse kernel visits only blocks that contain a predicted pair.

        All pairs of these blocks attend, so recall can only grow. No step needs memory for each pair of tokens.

        ``generate`` works inside, with dynamic and static caches. A word then visits the blocks of its own pairs. Without a
        cache it also visits those of the words in its block of queries. All cached keys are projected again for each word.

        Parameters
        ----------
        size : int
            Tokens per block, at least 1.
        certify : bool
            Whether ``with ... as found`` gives the rows that provably equal full attention, see
            :class:`~sparselib.control.CertifiedRows`.

        Raises
        ------
        ValueError
            If `size` is below 1, distances predict a head, or a head was tuned for blocks of another size. Sparsify an encoder
            with ``predictors=("blocks",)``, a decoder with ``("kmeans", "window")``.
        """
        return self.control.visiting(visited_blocks(self._layers, size), certify=certify)

    def save(self, folder: str | Path) -> None:
        """Write ``sparsified.safetensors``, atomically.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist.

        Raises
        ------
        ValueError
            If a head has a predictor of your own, whose code the file could not contain.
        """
        if own := {str(head) for layer in self._layers for head in layer.chosen if head.family == OWN}:
            raise ValueError(
                f"`folder` cannot take predictors of your own ({', '.join(sorted(own))}); sparsify again instead"
            )
        tensors = {}
        for number, layer in enumerate(self._layers):
            if layer.projection is not None:
                tensors |= {f"{number}.weight": layer.projection.weight, f"{number}.bias": layer.projection.bias}
                tensors |= {f"{number}.clusters{count}": x for count, x in layer.centroids.items()}
        description = {
            "weights": hash_of_weights(self.model),
            "configuration": configuration_of(self.model),
            "alpha": self._alphas if len(set(self._alphas)) > 1 else self._alphas[0],
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
        write(Path(folder), description, tensors)

    @classmethod
    def load(cls, model: PreTrainedModel, folder: str | Path, inputs: Inputs | None = None) -> Self:
        """Load the file of :meth:`save` for a model with the same weights and configuration.

        Parameters
        ----------
        model : PreTrainedModel
        folder : str or Path
        inputs : mapping of Tensors, optional
            As in :func:`sparselib.huggingface.use_attention`.

        Raises
        ------
        ValueError
            If the file was changed, has another format, or belongs to other weights or to another configuration. The message
            names the file, and the model is unchanged.
        """
        check_model(model)
        path = Path(folder, FILE)
        description, tensors = read(path)
        if hash_of_weights(model) != description["weights"]:
            raise ValueError(
                f"{path} belongs to other weights than those of this {type(model).__name__}; sparsify it again"
            )
        _check_configuration(path, description["configuration"], configuration_of(model))
        layers = layers_of(path, description, tensors)
        alphas = with_alpha(model, description["alpha"])
        with restored_on_error(model):
            control = use_attention(model, normalizers(alphas), inputs)
            if control.layers != len(layers):
                raise ValueError(
                    f"`inputs` must reach the {len(layers)} layers of {path}, but reach {control.layers} layers"
                )
            _check_direction(path, model, control, layers, inputs)
        return cls(model, control, layers, report_of(path, description), alphas)


def _check_direction(
    path: Path, model: PreTrainedModel, control: AttentionControl, layers: list[Layer], inputs: Inputs | None
) -> None:
    """Raise ``ValueError`` if a layer is saved as one of a decoder and shows later keys, or the other way round."""
    masks: dict[int, Tensor] = {}
    with preserving_state(model), control.observing(lambda call, mask: masks.update({call.layer: call.visible})):
        first_working_inputs(model, inputs)
    for number, layer in enumerate(layers):
        if not layer.left_dense and layer.causal != causal_and_lengths(masks[number])[0]:
            raise ValueError(f"{path}, layer {number}: `causal` must be {not layer.causal}, as in this model")


def _graph(number: int, layers: list[Layer], device: torch.device) -> PredictedGraph | None:
    """Return one layer's graph, or None if all of its heads are dense."""
    layer = layers[number]
    if layer.projection is None or all(setting.family == "dense" for setting in layer.chosen):
        return None
    predictor = per_head(layer.chosen, layer.centroids)
    return PredictedGraph([layer.projection.to(device)] * len(layers), [predictor] * len(layers), causal=layer.causal)


def hash_of_weights(model: nn.Module) -> str:
    """Return the SHA-256 of the names, shapes and bytes of a model's parameters and buffers."""
    return hash_of(model.state_dict())


def configuration_of(model: PreTrainedModel) -> dict:
    """Return the settings of a model that its output depends on, as plain JSON."""
    return _without_origin(json.loads(model.config.to_json_string(use_diff=False)))


def _without_origin(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_origin(x) for key, x in value.items() if key not in NO_EFFECT}
    return value


def _check_configuration(path: Path, saved: dict, current: dict) -> None:
    """Raise ``ValueError``, naming the settings, if the model has other ones than the saved model."""
    other = [key for key in sorted(saved.keys() | current.keys()) if saved.get(key) != current.get(key)]
    if other:
        values = ", ".join(f"{key} {saved.get(key)!r} instead of {current.get(key)!r}" for key in other)
        raise ValueError(f"{path} belongs to a model with {values}; sparsify this model again")
