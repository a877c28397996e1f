"""A translator on disk: its weights, with the options and the words that it was trained with; and fairseq's view of both."""

import re
from pathlib import Path

from fairseq import options as fairseq_options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import DictConfig
from torch import Tensor

from replication.files.storage import read_header, read_tensors, write_tensors
from replication.translation.fairseq.commands import USER_DIR

KIND = "translator"
#: What fairseq fills in when it loads a model: copies for torch's fused encoder layer, and uninitialised buffers of sinusoids.
DERIVED = re.compile(r"\._float_tensor$|^encoder\.layers\.\d+\.(in_proj|out_proj|fc1|fc2)_(weight|bias)$")


def save_translator(
    path: Path, state: dict[str, Tensor], settings: dict[str, object], source: str, target: str, data: Path
) -> None:
    """Write ``model.safetensors`` from fairseq's state of a model, trained with these options on ``data``."""
    state = {name: tensor for name, tensor in state.items() if not DERIVED.search(name)}
    # Embeddings are shared and have several names; a file holds them under the first.
    first, tied = {}, {}
    for name, tensor in sorted(state.items()):
        if (kept := first.setdefault(tensor.data_ptr(), name)) != name:
            tied[name] = kept
    tensors = {name: tensor for name, tensor in state.items() if name not in tied}
    header = {"settings": settings, "source": source, "target": target, "words": words_of(data, target)}
    write_tensors(path, tensors, kind=KIND, tied=tied, **header)


def read_state(path: Path) -> dict[str, Tensor]:
    """fairseq's state of a model, with all names of what is shared."""
    state = read_tensors(path, kind=KIND)
    return state | {name: state[kept] for name, kept in read_header(path, kind=KIND)["tied"].items()}


def configuration(data: Path, source: str, target: str, settings: dict[str, object]) -> DictConfig:
    """What fairseq makes of options such as ``{"encoder_layers": 6, "max_update": 100}``."""
    arguments = [str(data.resolve()), "--user-dir", str(USER_DIR), "--source-lang", source, "--target-lang", target]
    parser = fairseq_options.get_training_parser()
    return convert_namespace_to_omegaconf(
        fairseq_options.parse_args_and_arch(parser, arguments + command_line(settings))
    )


def command_line(settings: dict[str, object]) -> list[str]:
    """``{"max_epoch": 3, "share_all_embeddings": True}`` -> ``["--max-epoch", "3", "--share-all-embeddings"]``."""
    arguments: list[str] = []
    for key, value in settings.items():
        flag = f"--{key.replace('_', '-')}"
        if value is True:
            arguments.append(flag)
        elif value is not False:
            arguments += [flag, str(value)]
    return arguments


def words_of(data: Path, language: str) -> list[str]:
    """The dictionary of a folder of :func:`replication.translation.data.binarize`; ``<s>``, ``<unk>`` etc. are not listed.

    Raises
    ------
    FileNotFoundError
        If there is none for that language.
    """
    path = data / f"dict.{language}.txt"
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file; it is written by binarize")
    return [line.rpartition(" ")[0] for line in path.read_text(encoding="utf-8").splitlines()]


def check_vocabulary(model: Path, data: Path) -> None:
    """Raise ``ValueError`` unless the words of the model, in their order, are those of the dictionary of ``data``."""
    header = read_header(model, kind=KIND)
    known, found = header["words"], words_of(data, header["target"])
    if known != found:
        differ = next(n for n in range(len(known) + 1) if known[n : n + 1] != found[n : n + 1])
        raise ValueError(
            f"vocabulary of {data} has {len(found)} entries, the model {model} was trained with {len(known)}; "
            f"entry {differ} is {found[differ : differ + 1]} there, {known[differ : differ + 1]} here"
        )
