"""Build of the library; everything else is in pyproject.toml.

In the checkout, `sparselib.kernels` is a module beside its folder, for the reason that the module gives. Type checkers and
editors do not follow it into the folder, so an installation has the module as the folder's `__init__.py`.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildPackage(build_py):
    """Build the library with `sparselib.kernels` as a regular package."""

    def run(self) -> None:
        """Copy the sources, and move the module into its folder."""
        super().run()
        if not self.editable_mode:
            module = Path(self.build_lib, "sparselib", "kernels.py")
            module.replace(module.with_suffix("") / "__init__.py")


setup(cmdclass={"build_py": BuildPackage})
