"""How notebooks' kernels are found and connected, and their parameters read, when a command executes notebooks."""

import ast
import json
import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from jupyter_client.provisioning.local_provisioner import LocalProvisioner

#: Bytes of a folder's path that leave room for ``/kernel-xxxxxxxx/socket-5`` in the path of a socket, which has at most 103
#: (macOS; 107 on Linux). Jupyter's own folder is in the user's home, which can be longer.
LONGEST_FOLDER = 78
#: Types of parameters.
TYPES = {"str": str, "int": int, "float": float}


class FileSockets(LocalProvisioner):
    """Connect a kernel through files instead of ports.

    Jupyter looks for free ports and gives their numbers to the kernel, which opens them a second later. If another program has
    taken one of them by then, the kernel ends with "Kernel died before replying to kernel_info".

    Jupyter creates this object by its name among the entry points, ``file-sockets``.
    """

    folder: TemporaryDirectory | None = None

    async def pre_launch(self, **kwargs) -> dict:
        """Choose the files, and return the arguments that start the kernel."""
        # A kernel that starts again keeps its files.
        if self.folder is None:
            self.folder = TemporaryDirectory(prefix="kernel-", dir=_short_folder())
            self.parent.transport = "ipc"
            self.parent.ip = f"{self.folder.name}/socket"
        return await super().pre_launch(**kwargs)

    async def cleanup(self, restart: bool = False) -> None:
        """Remove the files, unless the kernel starts again."""
        await super().cleanup(restart)
        if self.folder and not restart:
            # Jupyter calls this twice, and also for a kernel that it could not start.
            self.folder.cleanup()


def _short_folder() -> str:
    """Return a folder for temporary files whose path leaves room for a socket's name."""
    usual = gettempdir()
    for folder in (usual, "/tmp", "/var/tmp", "/dev/shm"):
        if len(os.fsencode(folder)) <= LONGEST_FOLDER and os.access(folder, os.W_OK | os.X_OK):
            return folder
    raise OSError(
        f"`TMPDIR` must be a folder with a path of at most {LONGEST_FOLDER} bytes for the sockets of notebooks, got {usual}"
    )


def kernel_environment() -> dict[str, str]:
    """Return this process's environment with what makes notebooks run in it.

    Returns
    -------
    dict of str to str
        Kernels are those of this Python's environment, not a user's or another environment's of the same name, and are
        connected through files.

    Examples
    --------
    >>> kernel_environment()["JUPYTER_DEFAULT_PROVISIONER_NAME"]
    'file-sockets'
    """
    own = {name: value for name, value in os.environ.items() if name != "JUPYTER_PATH"}
    return own | {"JUPYTER_PREFER_ENV_PATH": "1", "JUPYTER_DEFAULT_PROVISIONER_NAME": "file-sockets"}


def parameters_of(notebook: Path, values: Iterable[str]) -> dict[str, object]:
    """Return a notebook's parameters as papermill injects them.

    Parameters
    ----------
    notebook : Path
        A notebook with a cell tagged ``parameters``, of lines such as ``claim: int = 2``.
    values : iterable of str
        Values of parameters, such as ``claim=3``, which become values of the parameters' types.

    Raises
    ------
    ValueError
        If a parameter is unknown or its value is of another type.
    """
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    (cell,) = (cell for cell in cells if "parameters" in cell["metadata"].get("tags", ()))
    types = {line.target.id: line.annotation.id for line in ast.parse("".join(cell["source"])).body}
    given: dict[str, object] = {}
    for value in values:
        name, _, text = value.partition("=")
        if name not in types:
            raise ValueError(f"{notebook}: `--set` must name one of {', '.join(types)}, got {value!r}")
        try:
            given[name] = TYPES[types[name]](text)
        except ValueError:
            raise ValueError(f"{notebook}: `{name}` must be of type {types[name]}, got {text!r}") from None
    return given
