"""How notebooks' kernels are found and connected when a command executes notebooks."""

import os
from tempfile import TemporaryDirectory

from jupyter_client.provisioning.local_provisioner import LocalProvisioner


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
            # A socket's path may have about 100 characters, and Jupyter's own folder is in the user's home.
            self.folder = TemporaryDirectory(prefix="kernel-")
            self.parent.transport = "ipc"
            self.parent.ip = f"{self.folder.name}/socket"
        return await super().pre_launch(**kwargs)

    async def cleanup(self, restart: bool = False) -> None:
        """Remove the files, unless the kernel starts again."""
        await super().cleanup(restart)
        if self.folder and not restart:
            # Jupyter calls this twice, and also for a kernel that it could not start.
            self.folder.cleanup()


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
