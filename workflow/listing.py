"""Names that ``snakemake --list-rules`` prints, with figures and tables apart from the workflow's steps."""

from collections.abc import Iterable


def listing(rules: Iterable[str], notebooks: Iterable[str]) -> str:
    """Return the names of all rules in groups.

    Parameters
    ----------
    rules : iterable of str
        Names of all rules.
    notebooks : iterable of str
        Those that finish a figure or a table.
    """
    drawn = sorted(set(notebooks) & set(rules))
    whole = [name for name in ("all", "archive", "ship", "report", "claims") if name in rules]
    steps = sorted(set(rules) - set(drawn) - set(whole))
    groups = {
        "Whole runs, the report and the ledger": whole,
        "Figures and tables, such as `snakemake --cores 2 fig04`": drawn,
        "Steps that these need, for `--forcerun`, such as `snakemake --cores 1 fig04 --forcerun sweep`": steps,
    }
    return "\n\n".join("\n".join([f"{title}:", *(f"  {name}" for name in names)]) for title, names in groups.items())
