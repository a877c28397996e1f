"""Time of beam search with the decoder's self-attention restricted to predicted graphs, against the unrestricted model.

python benchmarks/masked_decoding.py
"""

import time
from argparse import Namespace
from statistics import median

import replication.translation.fairseq  # noqa: F401  (makes fairseq importable)

# isort: split
import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from fairseq.sequence_generator import SequenceGenerator

from replication.files.provenance import hardware
from replication.translation.fairseq.transformer import SparseTransformer, sparse_transformer
from sparselib.graphs import PredictedGraph
from sparselib.predictors import Clustering, Distance, Quantization
from sparselib.predictors.positional import Nothing
from sparselib.projections import Projection

LAYERS, HEADS, WIDTH, WORDS, SENTENCES, LENGTH, BEAM = 6, 8, 512, 8000, 16, 30, 5
REPEATS = 5


def build(task: Namespace, stock: bool) -> torch.nn.Module:
    """Return a base-size transformer with random weights: stock fairseq with softmax, or ours with 1.5-entmax."""
    sizes = {"embed_dim": WIDTH, "layers": LAYERS, "attention_heads": HEADS, "ffn_embed_dim": 4 * WIDTH}
    args = Namespace(**{f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in sizes.items()})
    args.share_all_embeddings = True
    (base_architecture if stock else sparse_transformer)(args)
    torch.manual_seed(0)
    return (TransformerModel if stock else SparseTransformer).build_model(args, task).eval()


def seconds(model: torch.nn.Module, task: Namespace) -> float:
    """Return the time of one beam search for a batch of sentences, with hypotheses of equal length."""
    source = torch.randint(4, WORDS, (SENTENCES, LENGTH), generator=torch.Generator().manual_seed(0))
    sample = {"net_input": {"src_tokens": source, "src_lengths": torch.full((SENTENCES,), LENGTH)}}
    search = SequenceGenerator([model], task.target_dictionary, BEAM, max_len_b=LENGTH, min_len=LENGTH)
    start = time.perf_counter()
    search.generate([model], sample)
    return time.perf_counter() - start


def graph(predictor) -> PredictedGraph:
    """Return a graph with random projections, the predictor in every layer, and a window of 3."""
    generator = torch.Generator().manual_seed(1)
    projections = [
        Projection(torch.randn(HEADS, WIDTH // HEADS, 4, generator=generator) / 8, torch.zeros(HEADS, 4))
        for _ in range(LAYERS)
    ]
    return PredictedGraph(projections, [predictor] * LAYERS, 3, "first", causal=True)


@torch.no_grad()
def main() -> None:
    dictionary = Dictionary()
    for word in range(WORDS):
        dictionary.add_symbol(f"w{word}")
    task = Namespace(source_dictionary=dictionary, target_dictionary=dictionary)
    ours, stock = build(task, stock=False), build(task, stock=True)
    centroids = torch.randn(HEADS, 8, 4, generator=torch.Generator().manual_seed(2))
    graphs = {
        "k-means, 8 clusters": graph(Clustering(centroids)),
        "distance": graph(Distance(1.0)),
        "window alone": graph(Nothing()),
        "quantization, 8 bins": graph(Quantization(8)),
    }
    times: dict[str, list[float]] = {name: [] for name in ("entmax, unmasked", "stock fairseq, softmax", *graphs)}
    for _ in range(REPEATS + 1):  # All take turns, so that disturbances affect all. The first round is a warm-up.
        times["entmax, unmasked"].append(seconds(ours, task))
        times["stock fairseq, softmax"].append(seconds(stock, task))
        for name, restricted in graphs.items():
            control = ours.attention_controls["decoder"]
            with control.restricted_to(restricted):
                times[name].append(seconds(ours, task))
    base = median(times["entmax, unmasked"][1:])
    print(f"{hardware()}, torch {torch.__version__}")
    print(
        f"{LAYERS}+{LAYERS} layers, {HEADS} heads, {WIDTH}; {SENTENCES} sentences of {LENGTH}, beam {BEAM}; median of {REPEATS}"
    )
    for name, values in times.items():
        print(f"{name:<24} {median(values[1:]):6.2f} s  {median(values[1:]) / base:5.2f} x unmasked entmax")


if __name__ == "__main__":
    main()
