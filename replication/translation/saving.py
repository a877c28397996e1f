"""Translator files: weights with training options and dictionary, and their conversion for fairseq."""

import re
from pathlib import Path

from fairseq import options as fairseq_options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import DictConfig
from torch import Tensor

from replication.config.translation import TranslatorArchitecture, TranslatorTraining
from replication.files.names import file_name
from replication.files.storage import FormatError, read_header, read_tensors, write_tensors
from replication.translation.fairseq.commands import USER_DIR

KIND = "translator"
#: fairseq options that do not vary: the transformer of Vaswani et al. (2017), and replacements of unsuitable defaults.
FIXED = {
    "task": "translation",
    "arch": "sparse_transformer",
    "criterion": "label_smoothed_cross_entropy",
    "label-smoothing": 0.1,
    "optimizer": "adam",
    "adam-betas": "(0.9, 0.98)",
    "lr_scheduler": "inverse_sqrt",
    "share-all-embeddings": True,
    "no-epoch-checkpoints": True,
    "log-format": "json",
    "skip-invalid-size-inputs-valid-test": True,
    # fairseq's default of 0 disables clipping, and entmax's first steps would then be unbounded.
    "clip-norm": 1.0,
    # Corpora are in memory, and each data-loader worker would take five seconds to end.
    "num-workers": 0,
}
#: Options that a configuration sets.
CHOSEN = {*TranslatorArchitecture.model_fields, *TranslatorTraining.model_fields}
#: Values of these options that are text. fairseq evaluates some texts as code, and takes others for options.
PLAIN = re.compile(r"[A-Za-z][\w -]*")
#: Entries that fairseq fills in on loading: copies for torch's fused encoder layer, and uninitialised sinusoid buffers.
DERIVED = re.compile(r"\._float_tensor$|^encoder\.layers\.\d+\.(in_proj|out_proj|fc1|fc2)_(weight|bias)$")


def save_translator(
    path: Path, state: dict[str, Tensor], settings: dict[str, object], source: str, target: str, data: Path
) -> None:
    """Write a fairseq model state to a file, with its training options and dictionary.

    Parameters
    ----------
    path : Path
        The file.
    state : dict of Tensor
        fairseq's model state.
    settings : dict
        Training options of fairseq.
    source, target : str
        Language codes.
    data : Path
        Folder of :func:`replication.translation.data.binarize` that the model was trained on.
    """
    state = {name: tensor for name, tensor in state.items() if not DERIVED.search(name)}
    # Shared embeddings have several names; the file contains them once, under the first name.
    first, tied = {}, {}
    for name, tensor in sorted(state.items()):
        if (kept := first.setdefault(tensor.data_ptr(), name)) != name:
            tied[name] = kept
    tensors = {name: tensor for name, tensor in state.items() if name not in tied}
    header = {"settings": settings, "source": source, "target": target, "words": words_of(data, target)}
    write_tensors(path, tensors, kind=KIND, tied=tied, **header)


def read_state(path: Path) -> dict[str, Tensor]:
    """Read fairseq's model state, with all names of shared tensors."""
    state = read_tensors(path, kind=KIND)
    return state | {name: state[kept] for name, kept in read_header(path, kind=KIND)["tied"].items()}


def read_settings(model: Path) -> tuple[str, str, dict[str, object]]:
    """Return a translator's source and target language and training options.

    Raises
    ------
    FormatError
        If an option or its value is none of a configuration; fairseq would import and run code that others name.
    """
    header = read_header(model, kind=KIND)
    for name, value in header["settings"].items():
        is_plain = isinstance(value, int | float) or (isinstance(value, str) and PLAIN.fullmatch(value))
        if not (name in CHOSEN and is_plain) and (name not in FIXED or FIXED[name] != value):
            raise FormatError(f"{model}: {name} must be an option of a translator's configuration, got {value!r}")
    return file_name(model, header["source"]), file_name(model, header["target"]), header["settings"]


def configuration(data: Path, source: str, target: str, settings: dict[str, object]) -> DictConfig:
    """Return fairseq's configuration for options such as ``{"encoder_layers": 6, "max_update": 100}``."""
    arguments = [str(data.resolve()), "--user-dir", str(USER_DIR), "--source-lang", source, "--target-lang", target]
    parser = fairseq_options.get_training_parser()
    return convert_namespace_to_omegaconf(
        fairseq_options.parse_args_and_arch(parser, arguments + command_line(settings))
    )


def command_line(settings: dict[str, object]) -> list[str]:
    """Convert options to command-line arguments.

    ``{"max_epoch": 3, "share_all_embeddings": True}`` becomes ``["--max-epoch", "3", "--share-all-embeddings"]``.
    """
    arguments: list[str] = []
    for key, value in settings.items():
        flag = f"--{key.replace('_', '-')}"
        if value is True:
            arguments.append(flag)
        elif value is not False:
            arguments += [flag, str(value)]
    return arguments


def words_of(data: Path, language: str) -> list[str]:
    """Return the dictionary's words, without special symbols such as ``<s>`` and ``<unk>``.

    Parameters
    ----------
    data : Path
        Folder of :func:`replication.translation.data.binarize`.
    language : str
        Language code.

    Raises
    ------
    FileNotFoundError
        If the folder has no dictionary of that language.
    """
    path = data / f"dict.{language}.txt"
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file; `binarize` writes it")
    return [line.rpartition(" ")[0] for line in path.read_text(encoding="utf-8").splitlines()]


def check_vocabulary(model: Path, data: Path) -> None:
    """Check that the model was trained with the dictionary of ``data``, in the same order.

    Raises
    ------
    ValueError
        If the words or their order differ.
    """
    header = read_header(model, kind=KIND)
    model_words, data_words = header["words"], words_of(data, header["target"])
    if model_words != data_words:
        entries = range(len(model_words) + 1)
        differ = next(n for n in entries if model_words[n : n + 1] != data_words[n : n + 1])
        raise ValueError(
            f"{data}: vocabulary must be that of {model} with {len(model_words)} entries, got {len(data_words)}; "
            f"entry {differ} must be {model_words[differ : differ + 1]}, got {data_words[differ : differ + 1]}"
        )
