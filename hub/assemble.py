"""What Hugging Face's kernel-builder builds, in an empty folder: ``build.toml`` and ``torch-ext/block_sparse_entmax/``.

python hub/assemble.py FOLDER

Then, in the folder, ``kernel-builder build`` makes ``build/torch-cpu`` and ``build/torch-cuda``: the same files, a
``metadata.json`` and an ``_ops.py`` whose namespace is that of the build. In Python, ``kernels.get_local_kernel(FOLDER)`` loads
the one that fits. Modules import each other relatively, and beside these nothing but torch and triton; they need Python 3.11.
"""

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULES = HERE.parent / "kernels"


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python hub/assemble.py FOLDER")
    folder = Path(sys.argv[1])
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder}: not empty")
    package = folder / "torch-ext" / "block_sparse_entmax"
    shutil.copytree(HERE / "torch-ext", folder / "torch-ext", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "build.toml", folder)
    for module in sorted(MODULES.glob("*.py")):
        if module.name != "_ops.py":  # the builder writes its own, and refuses to write over another
            shutil.copy(module, package)


if __name__ == "__main__":
    main()
