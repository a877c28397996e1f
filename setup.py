"""Build of the library and its compiled kernels; everything else is in pyproject.toml.

In the checkout, `sparselib.kernels` is a module beside its folder, for the reason that the module gives. Type checkers and
editors do not follow it into the folder, so an installation has the module as the folder's `__init__.py`.
"""

import platform
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

#: Compiler flags of the support backend for each kind of processor; the library loads the one that PyTorch detects.
BUILDS = {"portable": []}
if platform.machine() in ("x86_64", "AMD64"):
    BUILDS["avx2"] = ["-mavx2", "-mfma"]
    BUILDS["avx512"] = ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma"]
# GCC 12 warns of its own header.
FLAGS = ["-std=c++17", "-O3", "-ffp-contract=fast", "-fopenmp", "-Wno-uninitialized", "-Wno-maybe-uninitialized"]


class BuildPackage(build_py):
    """Build the library with `sparselib.kernels` as a regular package."""

    def run(self) -> None:
        """Copy the sources, and move the module into its folder."""
        super().run()
        if not self.editable_mode:
            module = Path(self.build_lib, "sparselib", "kernels.py")
            module.replace(module.with_suffix("") / "__init__.py")


class BuildKernels(build_ext):
    """Compile what can be compiled; without a compiler, the library computes everything in PyTorch."""

    def build_extension(self, extension: Extension) -> None:
        """Compile a library, or print one line that says why not."""
        folder, self.build_temp = self.build_temp, f"{self.build_temp}/{extension.name}"  # all compile one source
        try:
            super().build_extension(extension)
        except Exception as error:
            print(f"{extension.name}: not compiled, attention on a CPU uses PyTorch instead ({error})", file=sys.stderr)
        finally:
            self.build_temp = folder

    def get_ext_filename(self, fullname: str) -> str:
        """Return a path that does not end like that of a Python module, which tools would import."""
        return str(Path(*fullname.split("."))) + ".so.1"

    def get_export_symbols(self, extension: Extension) -> list[str]:
        """Return nothing: this is a C library, not a Python module."""
        return []


def compiled(build: str, flags: list[str]) -> Extension:
    """Return the library of one kind of processor, which needs neither Python's nor PyTorch's headers."""
    return Extension(
        f"sparselib.kernels.support_{build}",
        ["kernels/support.cpp"],
        depends=[str(path) for path in Path("kernels").glob("support_*.h")],
        extra_compile_args=[*FLAGS, *flags],
        extra_link_args=["-fopenmp"],
        language="c++",
        optional=True,
    )


# The sources use extensions of GCC and Clang, and were tested on Linux.
kernels = [compiled(*build) for build in BUILDS.items()] if sys.platform == "linux" else []
setup(cmdclass={"build_py": BuildPackage, "build_ext": BuildKernels}, ext_modules=kernels)
