"""fairseq's commands as functions of a list of arguments."""

import shutil
from pathlib import Path

import replication.translation.fairseq  # noqa: F401  (makes fairseq importable)

USER_DIR = Path(__file__).parent / "user_dir" / "sparselib_fairseq"


def preprocess(arguments: list[str]) -> None:
    """Run ``fairseq-preprocess``, which converts subword text to fairseq's binary format."""
    from fairseq import options
    from fairseq_cli import preprocess

    preprocess.main(options.get_preprocessing_parser().parse_args(arguments))


def train(arguments: list[str]) -> None:
    """Run ``fairseq-train``, resuming from ``checkpoint_last.pt`` in its ``--save-dir``."""
    from fairseq import checkpoint_utils, options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.distributed import utils as distributed
    from fairseq.file_io import PathManager
    from fairseq_cli import train

    # The newest checkpoint is a copy of the one just written. With fairseq's own copy, a run killed meanwhile could not resume.
    PathManager.copy = staticmethod(copy_whole)
    parser = options.get_training_parser()
    args = options.parse_args_and_arch(parser, ["--user-dir", str(USER_DIR), *arguments])
    # fairseq keeps the best loss in attributes of these functions, so a second, worse model in one process would not be saved.
    for function in (checkpoint_utils.save_checkpoint, train.should_stop_early):
        vars(function).clear()
    distributed.call_main(convert_namespace_to_omegaconf(args), train.main)


def copy_whole(source: str, target: str, overwrite: bool = True) -> str:
    """Copy a file so that `target` is never incomplete.

    Arguments, and the true return value, are those of fairseq's own function.
    """
    partial = Path(f"{target}.partial")
    try:
        shutil.copyfile(source, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def generate(arguments: list[str]) -> None:
    """Run ``fairseq-generate``."""
    from fairseq import options
    from fairseq_cli import generate

    arguments = ["--user-dir", str(USER_DIR), *arguments]
    generate.main(options.parse_args_and_arch(options.get_generation_parser(), arguments))


COMMANDS = {function.__name__: function for function in (preprocess, train, generate)}
