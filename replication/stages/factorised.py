"""The stage that follows information through factorised attention."""

from replication.stages.options import Output


def factorised(output: Output) -> None:
    """Keys per query of the factorised patterns, and through how many layers every position reaches every earlier one."""
    from replication.files.storage import write_table
    from replication.graphs.reach import factorised_reach

    write_table(output, factorised_reach())
