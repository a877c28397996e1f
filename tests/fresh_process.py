"""What an import brings with it, seen in a process of its own."""

import subprocess
import sys

from replication.files.paths import ROOT


def modules_after(code: str) -> set[str]:
    """Names of all modules that a fresh Python has loaded after running ``code``, which may print nothing."""
    run = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{code}\nprint(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True).stdout.split())
