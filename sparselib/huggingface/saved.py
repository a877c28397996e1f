"""The file of a sparsified model: one safetensors file, whose header describes it and has a checksum of everything."""

import hashlib
import json
import math
import os
import secrets
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from sparselib.huggingface.heads import Setting
from sparselib.huggingface.layers import Layer
from sparselib.huggingface.report import HeadReport, OutputReport, Report, Step
from sparselib.projections import Projection

FORMAT, FILE = 2, "sparsified.safetensors"
#: What a file describes besides its format and checksums.
KEYS = ("weights", "configuration", "alpha", "layers", "report")
#: Types of values in JSON, by the type of a report's field.
TYPES = {bool: (bool,), int: (int,), float: (int, float), str: (str,)}
#: Fields of a report and of its heads that are shares or probabilities.
SHARES = ("recall", "confidence", "bound", "sparsity", "risk", "loss")


def write(folder: Path, description: Mapping[str, object], tensors: Mapping[str, Tensor]) -> None:
    """Write a description and its tensors to a file that replaces an earlier one at once."""
    tensors = {name: x.cpu().contiguous() for name, x in tensors.items()}
    description = {"format": FORMAT, **description, "tensors": hash_of(tensors)}
    # A single key, because safetensors writes several in a random order.
    text = json.dumps(description | {"checksum": _checksum(description)})
    _replace(folder / FILE, save(tensors, {"sparsified": text}))


def read(path: Path) -> tuple[dict, dict[str, Tensor]]:
    """Return the description and the tensors of a file of :func:`write`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file was changed or has another format.
    """
    content = path.read_bytes()
    try:
        tensors = load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        description = json.loads(header["__metadata__"]["sparsified"])
        checksum = description.pop("checksum")
    except (SafetensorError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"{path} was changed since it was saved ({error}); save it again") from None
    if checksum != _checksum(description) or hash_of(tensors) != description.get("tensors"):
        raise ValueError(f"{path} was changed since it was saved; save it again")
    if description.get("format") != FORMAT:
        raise ValueError(
            f"{path} must have format {FORMAT}, got {description.get('format')}; sparsify with this version"
        )
    if missing := [key for key in KEYS if key not in description]:
        raise ValueError(f"{path} must describe {', '.join(KEYS)}, lacks {', '.join(missing)}; save it again")
    return description, tensors


def layers_of(path: Path, description: Mapping, tensors: Mapping[str, Tensor]) -> list[Layer]:
    """Return the layers of a description; raise ``ValueError``, naming layer and head, if a value is impossible."""
    alpha = description["alpha"]
    if not ((isinstance(alpha, list) and alpha and all(map(_is_alpha, alpha))) or _is_alpha(alpha)):
        raise ValueError(f"{path}: `alpha` must be a number of at least 1, or one per layer, got {alpha!r:.80}")
    return [_layer(path, number, entry, tensors) for number, entry in enumerate(description["layers"])]


def _is_alpha(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 1


def _layer(path: Path, number: int, entry: Mapping, tensors: Mapping[str, Tensor]) -> Layer:
    place = f"{path}, layer {number}"
    if not isinstance(entry, Mapping) or entry.keys() != {"causal", "left_dense", "heads"}:
        raise ValueError(f"{place}: must have causal, left_dense and heads, got {entry!r:.80}")
    for name, kind in (("causal", bool), ("left_dense", str), ("heads", list)):
        if type(entry[name]) is not kind:
            raise ValueError(f"{place}: `{name}` must be of type {kind.__name__}, got {entry[name]!r:.80}")
    layer = Layer(entry["causal"], entry["left_dense"])
    for head, values in enumerate(entry["heads"]):
        try:
            layer.chosen.append(Setting(**values))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{place}, head {head}: {error}") from None
    if layer.left_dense:
        return layer
    start = f"{number}.clusters"
    own = {name: x for name, x in tensors.items() if name.startswith(f"{number}.")}
    if missing := [name for name in (f"{number}.weight", f"{number}.bias") if name not in own]:
        raise ValueError(f"{place}: must have the tensors weight and bias, lacks {', '.join(missing)}")
    heads = len(layer.chosen)
    for name, x in own.items():
        if x.dim() != (2 if name.endswith("bias") else 3) or len(x) != heads or not x.isfinite().all():
            raise ValueError(
                f"{place}: {name} must be finite with a row for each of {heads} heads, got {tuple(x.shape)}"
            )
    layer.projection = Projection(own[f"{number}.weight"], own[f"{number}.bias"])
    layer.centroids = {int(name.removeprefix(start)): x for name, x in own.items() if name.startswith(start)}
    for head, setting in enumerate(layer.chosen):
        if setting.family == "kmeans" and setting.clusters not in layer.centroids:
            raise ValueError(f"{place}, head {head}: there are no centroids of {setting.clusters} clusters")
    return layer


def report_of(path: Path, description: Mapping) -> Report:
    """Return the report of a description; raise ``ValueError`` if it has other fields or types."""
    try:
        report = description["report"]
        heads = [HeadReport(**head) for head in report["heads"]]
        output = report.get("output")
        steps = [] if output is None else [Step(**step) for step in output["path"]]
        output = None if output is None else OutputReport(**output | {"path": steps})
        report = Report(**report | {"heads": heads, "output": output})
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: `report` must have the fields of a report, its heads and its output ({error})"
        ) from None
    for part in (report, *heads, *([] if output is None else [output]), *steps):
        for field in fields(part):
            value = getattr(part, field.name)
            if field.type in TYPES and type(value) not in TYPES[field.type]:
                raise ValueError(f"{path}: `{field.name}` must be of type {field.type.__name__}, got {value!r:.80}")
            if field.name in SHARES and not 0 <= value <= 1:
                raise ValueError(f"{path}: `{field.name}` must be from 0 to 1, got {value!r}")
    return report


def read_report(folder: str | Path) -> Report:
    """Return the report of a folder of :meth:`Sparsified.save`, without a model.

    Parameters
    ----------
    folder : str or Path

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file was changed or has another format.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from transformers import RobertaConfig, RobertaModel
    >>> from sparselib.huggingface import sparsify
    >>> tiny = {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 99}
    >>> model = RobertaModel(RobertaConfig(**tiny)).eval()
    >>> batches = [{"input_ids": torch.randint(5, 99, (4, 12))} for _ in range(4)]
    >>> with TemporaryDirectory() as folder:
    ...     sparsify(model, batches, recall=0.5, confidence=0.5).save(folder)
    ...     read_report(folder).recall
    0.5
    """
    path = Path(folder, FILE)
    return report_of(path, read(path)[0])


def hash_of(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of the names, types, shapes and bytes of tensors."""
    digest = hashlib.sha256()
    for name, x in sorted(tensors.items()):
        digest.update(f"{name} {x.dtype} {tuple(x.shape)}".encode())
        digest.update(x.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _checksum(description: Mapping) -> str:
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


def _replace(path: Path, content: bytes) -> None:
    """Write a file atomically; the temporary file has a name of its own, so that concurrent writers do not collide."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
