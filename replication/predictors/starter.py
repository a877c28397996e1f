"""Files to start from with a predictor of your own: its class, and a profile that adds it to another one."""

import re
from keyword import iskeyword
from pathlib import Path

from replication.predictors.methods import METHODS, UNPREDICTED

PREDICTOR = '''\
"""Predictor of the method NAME."""

from dataclasses import dataclass
from typing import ClassVar

from sparselib.predictors import Needs, Rows, RowWise
from torch import Tensor
from torch.nn.functional import normalize


@dataclass(frozen=True)
class CLASS(RowWise):
    """Pairs of a query and a key at a small angle. Replace this by your idea."""

    needs: ClassVar[Needs] = Needs()  # each pair is decided alone
    cross: ClassVar[bool] = True  # there may be other queries than keys

    cosine: float  # each field is a key of the profile

    def pairs(self, rows: Rows) -> Tensor:
        """Return the predicted pairs, Bool[B, H, Q, K], of projected queries and keys [B, H, n, R]."""
        q, k = normalize(rows.q, dim=-1), normalize(rows.k, dim=-1)
        return (q @ k.mT >= self.cosine) & rows.visible
'''
PROFILE = """\
# The method NAME beside those of another profile, such as config/demo.yaml. Check the class, then draw Figure 4:
#   CHECK
#   FIGURE
masked_lm:
  # A list is a setting per value; they should span 1 to 5 times the gold graph's share of the pairs. Recall is measured under
  # all of them, and perplexity under the best at each budget.
  methods:
    NAME:
      predictor: "FILE:CLASS"
      cosine: [0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99]
  # Each entry is a row of the ledger: is the method at least as good as the others at 1, 2 and 5 times that share?
  compare:
    - method: NAME
      against: [sparsefinder-distance, window]
      of: recall
"""


def commands(name: str) -> tuple[str, str, str]:
    """Return the commands that check a method's predictor, draw Figure 4 with it, and archive the run."""
    snakemake = f"snakemake --cores 2 {{}} --configfile config/demo.yaml {name}.yaml"
    return (
        f"replicate check {_file(name)}:{_class(name)} --set cosine=0.9",
        snakemake.format("fig04"),
        snakemake.format("archive"),
    )


def start(name: str, folder: Path) -> list[Path]:
    """Write a profile and a predictor's file, and return their paths.

    Parameters
    ----------
    name : str
        Name of the method.
    folder : Path
        Folder of the files.

    Raises
    ------
    ValueError
        If the name is not one of lower-case words joined by hyphens, or another method has it.
    FileExistsError
        If one of the files exists.
    """
    if not re.fullmatch("[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or iskeyword(_class(name)):
        raise ValueError(f"`name` must be lower-case words joined by hyphens, such as my-idea, got {name!r}")
    if name in (*METHODS, *UNPREDICTED):
        raise ValueError(f"`name` must be another one than those of {', '.join(METHODS)}, got {name!r}")
    check, figure, _ = commands(name)
    words = {"NAME": name, "FILE": _file(name), "CLASS": _class(name), "CHECK": check, "FIGURE": figure}
    texts = {folder / _file(name): PREDICTOR, folder / f"{name}.yaml": PROFILE}
    if existing := [path for path in texts if path.exists()]:
        raise FileExistsError(f"{existing[0]}: already exists; choose another name")
    for path, text in texts.items():
        with open(path, "x", encoding="utf-8") as file:
            file.write(re.sub("|".join(words), lambda word: words[word[0]], text))
    return [*texts]


def _file(name: str) -> str:
    return f"{name.replace('-', '_')}.py"


def _class(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))
