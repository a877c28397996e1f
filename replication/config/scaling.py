"""The section `scaling`: time and memory of attention on random inputs."""

from pydantic import Field

from replication.schema import Section
from replication.schema import types as t


class ScalingPredictor(Section):
    """Version 2 of the block-based Sparsefinder, which is timed, too."""

    clusters: t.Count = Field(description="Clusters.")
    count: t.Count = Field(description="Blocks that each cluster picks.")


class Scaling(Section):
    """Time and memory of block-sparse attention and its peers on random inputs. It needs neither model nor text."""

    lengths: t.Unique[t.Count] = Field(description="Tokens, n in the figure.")
    densities: t.Unique[t.ShareOrAll] = Field(
        description="Shares of blocks that block-sparse attention visits. Densities below one block per row are skipped."
    )
    heads: t.Count = Field(description="Attention heads.")
    dimension: t.whole(1, 256) = Field(description="Size of each head.")
    block: t.Count = Field(description="Queries, and keys, per block.")
    predictor: ScalingPredictor
    repeats: t.Count = Field(description="Runs whose median counts.")
