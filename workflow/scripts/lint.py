"""``snakemake --lint`` without the check that each rule names a conda environment.

All rules run in Snakemake's own environment: a conda file cannot install fairseq without its dependencies, nor this checkout.
Filtering the output of ``--lint json`` is no alternative, because Snakemake 9.27.1 prints text there.
"""

from snakemake.cli import main
from snakemake.linting.rules import RuleLinter

del RuleLinter.lint_missing_software_definition
main(["--lint"])
