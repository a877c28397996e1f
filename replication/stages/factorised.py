"""The stage that follows information through factorised attention."""

from replication.stages.options import Output


def factorised(output: Output) -> None:
    """Keys per query of the factorised patterns, and through how many layers every position reaches every earlier one."""
    from replication.reach import factorised_reach
    from replication.storage import write_table

    write_table(output, factorised_reach())
