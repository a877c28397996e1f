"""What heads attend to: coreferent tokens."""

from replication.stages.layers import by_layer, tables
from replication.stages.options import Graphs, GraphTokens, Table


def coreference(graphs: Graphs, tokens: GraphTokens, output: Table) -> None:
    """How much attention each head gives to coreferent tokens."""
    from replication.corpora.blocks import KIND
    from replication.files.storage import read_header, read_tensors, write_table
    from replication.graphs.analysis import coreference_by_head

    chains, source = read_tensors(tokens, kind=KIND)["chains"], read_header(tokens, kind=KIND)["chain_source"]
    table = tables(lambda layer: coreference_by_head(layer, chains), by_layer(graphs))
    write_table(output, table.assign(chains=source))
