"""Kernels of executed notebooks start whatever other programs do with ports, and leave no files."""

import socket
import tempfile
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel
from jupyter_client.provisioning import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalPortCache

from replication import jupyter
from replication.jupyter import kernel_environment


@pytest.fixture
def provisioner(monkeypatch):
    """Give the name of a provisioner to Jupyter, which reads it once per process."""

    def choose(name):
        monkeypatch.setenv("JUPYTER_DEFAULT_PROVISIONER_NAME", name)
        KernelProvisionerFactory.clear_instance()

    yield choose
    KernelProvisionerFactory.clear_instance()


@pytest.fixture
def temporary(monkeypatch):
    """Give an empty folder for temporary files; its path is short, as a socket's must be."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


@pytest.fixture
def taken_ports(monkeypatch):
    """Let another program take each port between Jupyter's choice and the kernel's start."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(LocalPortCache, "find_available_port", lambda *_: taken.getsockname()[1])
        yield


def answer(code: str) -> str:
    """Return what a new kernel prints, and then the same kernel started again."""
    printed = []
    manager, client = start_new_kernel(startup_timeout=60)
    try:
        for again in (False, True):
            if again:
                manager.restart_kernel(now=True)
                client.wait_for_ready(timeout=60)
            client.execute_interactive(
                code, output_hook=lambda message: printed.append(message["content"].get("text", "")), timeout=60
            )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return "".join(printed)


def test_a_kernel_starts_while_its_ports_are_taken(provisioner, temporary, taken_ports):
    provisioner(kernel_environment()["JUPYTER_DEFAULT_PROVISIONER_NAME"])
    assert answer("print(6 * 7)") == "42\n" * 2
    assert list(temporary.iterdir()) == []


def test_jupyters_own_kernels_need_their_ports(provisioner, taken_ports):
    """If this fails, Jupyter no longer chooses ports before the kernel opens them, and the provisioner can go."""
    provisioner("local-provisioner")
    with pytest.raises(RuntimeError, match="Kernel died"):
        answer("print(6 * 7)")


def test_the_folder_of_temporary_files_may_have_a_long_path(provisioner, tmp_path, monkeypatch):
    provisioner("file-sockets")
    long = tmp_path / ("long" * 40)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert answer("print(6 * 7)") == "42\n" * 2


@pytest.mark.parametrize("length", [jupyter.LONGEST_FOLDER, jupyter.LONGEST_FOLDER + 1])
def test_the_longest_path_that_a_socket_can_have_is_used(provisioner, monkeypatch, length):
    provisioner("file-sockets")
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        folder = Path(short, "x" * (length - len(short) - 1))
        folder.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        assert jupyter._short_folder() == (str(folder) if length == jupyter.LONGEST_FOLDER else "/tmp")
        assert answer("print(6 * 7)") == "42\n" * 2


def test_without_a_short_folder_the_variable_is_named(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/" + "x" * 100)
    monkeypatch.setattr(jupyter.os, "access", lambda *_: False)
    with pytest.raises(OSError, match="`TMPDIR` must be a folder with a path of at most 78 bytes"):
        jupyter._short_folder()


def test_the_users_home_may_have_a_long_path(provisioner, temporary, tmp_path, monkeypatch):
    provisioner("file-sockets")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / ("long" * 40)))
    assert answer("print(6 * 7)") == "42\n" * 2
