"""Where the repository lies, so that notebooks run from any folder."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
