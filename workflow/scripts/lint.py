"""``snakemake --lint``, but for one advice: that each rule should name the conda environment that it runs in.

One environment serves all rules, the one that Snakemake itself runs in: a file of conda's cannot promise fairseq without its
dependencies, nor this checkout. (``--lint json``, which could be filtered, prints text in Snakemake 9.27.1.)
"""

from snakemake.cli import main
from snakemake.linting.rules import RuleLinter

del RuleLinter.lint_missing_software_definition
main(["--lint"])
