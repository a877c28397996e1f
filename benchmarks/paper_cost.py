"""Estimate the GPU hours, memory and disk space of the jobs of config/paper.yaml, or of a cut of it.

The script counts operations from the configuration: six per weight and training token, two per weight and evaluated token, plus
attention. As a check that needs no GPU, it trains two sizes of the masked language model for a few steps; the time per counted
operation should not depend on the size. GPU hours follow from an assumed sustained rate, ``--tflops``.

Run: python benchmarks/paper_cost.py [--config config/paper-week.yaml] [--tflops 75]
"""

import argparse
import re
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import yaml
from transformers import RobertaConfig, RobertaForMaskedLM

from replication.files.provenance import hardware
from replication.graphs.grids import expand
from replication.masked_lm.model import masked_loss
from replication.translation.contenders import CONTENDERS
from sparselib.huggingface import use_attention

ROOT = Path(__file__).parents[1]
GIB = 2**30
#: Sentence pairs of the corpora, from their dataset cards on the hub: para_crawl 7.1, IWSLT 2014, 2015 and 2017, WMT 2014 and
#: 2016.
PAIRS = {
    "ende": 97_000_000,
    "enfr": 104_000_000,
    "iwslt2017": 230_000,
    "iwslt14": 160_000,
    "iwslt2015": 133_000,
    "wmt16": 610_000,
    "wmt14": 4_500_000,
}
#: Subwords per sentence, about 1.3 per word.
PIECES = {"iwslt2017": 24, "iwslt14": 24, "iwslt2015": 25, "wmt16": 27, "wmt14": 28, "ende": 26, "enfr": 28}
#: Subwords per sentence and number of sentences in the test sets for graphs and BLEU.
TEST_PIECES, TEST_SENTENCES = 25, 1_100


@dataclass(frozen=True)
class Transformer:
    """Sizes of one side of a transformer, and the costs that follow from them."""

    layers: int
    width: int
    inner: int
    heads: int
    vocabulary: int
    #: Attentions per layer, each with its projections; a decoder has two.
    attentions: int = 1

    @property
    def weights(self) -> int:
        """Number of weights without embeddings, which need no products, and without the projection to the vocabulary."""
        return self.layers * (self.attentions * 4 * self.width**2 + 2 * self.width * self.inner)

    def operations(self, n: int, *, training: bool, projected: float = 1.0) -> float:
        """Return the operations per token in sequences of ``n`` tokens, a share ``projected`` of which go to the vocabulary."""
        forward = 2 * (self.weights + projected * self.width * self.vocabulary)
        forward += 4 * self.layers * self.attentions * n * self.width
        return (3 if training else 1) * forward

    def memory(self, tokens: int, keys: int) -> float:
        """Return the bytes needed in training for so many tokens per step, each attending to so many keys.

        Weights, gradients and Adam's moments are in float32, activations in half precision (Korthikanti et al. 2022, Eq. 2).
        """
        all_weights = self.weights + self.width * self.vocabulary
        activations = self.layers * tokens * self.width * (34 + 5 * self.heads * keys / self.width)
        return 16 * all_weights + activations


@dataclass(frozen=True)
class Job:
    """A number of equal jobs, with the costs of one."""

    name: str
    count: int
    operations: float
    memory: float = 0.0
    disk: float = 0.0


def members(methods: dict) -> int:
    """Return the number of predictors in a grid."""
    return len(expand(methods))


def masked_lm(config: dict) -> list[Job]:
    """Return the jobs of the masked language model."""
    section, seeds = config["masked_lm"], len(config["student_seeds"])
    base = Transformer(section["layers"], 768, 3072, 12, 50_265)
    n, training = section["length"], section["training"]
    batch = training["per_device_train_batch_size"]
    tokens = training["max_steps"] * batch * training["gradient_accumulation_steps"] * n
    share = training["mask_probability"]
    evaluated = section["evaluation"]["sequences"] * n * base.operations(n, training=False, projected=share)
    points = members(section["replaced"]["methods"]) * len(section["replaced"]["windows"])
    graphs = section["graphs"]["train"] + section["graphs"]["valid"]
    blocks = section["blocks"]
    # Sparsefinder's version 1, version 2 for each number of clusters, and BigBird with two normalisers.
    choices = len(blocks["sizes"]) * len(blocks["counts"]) * (3 + len(blocks["clusters"]))
    return [
        Job(
            "masked LM: train",
            1,
            tokens * base.operations(n, training=True, projected=share),
            base.memory(n * batch, n),
        ),
        Job(
            "masked LM: graphs",
            1,
            graphs * n * base.operations(n, training=False, projected=0),
            disk=graphs * section["layers"] * n * 2 * 768 * 4,
        ),
        Job("masked LM: perplexity under predicted graphs", seeds, points * evaluated),
        Job("masked LM: perplexity under predicted blocks", 1, seeds * choices * evaluated),
    ]


def corpus_of(source: dict) -> str:
    """Return the name in ``PAIRS`` of a configured corpus."""
    title = f"{source['name']} {source.get('configuration', '')}".lower()
    return next(name for name in PAIRS if name in title or name in title.replace("_", "").replace("/", ""))


def pairs_of(source: dict) -> int:
    """Return the sentence pairs of a configured corpus's training split, which can be a slice such as ``train[:1000]``."""
    start, end = re.fullmatch(r"\w+(?:\[(\d*):(\d*)\])?", source.get("names", {}).get("train", "train")).groups()
    return min(int(end or PAIRS[corpus_of(source)]), PAIRS[corpus_of(source)]) - int(start or 0)


def translator(architecture: dict, vocabulary: int) -> tuple[Transformer, Transformer]:
    """Return the encoder and the decoder of a translation model."""
    return tuple(
        Transformer(
            architecture[f"{side}_layers"],
            architecture[f"{side}_embed_dim"],
            architecture[f"{side}_ffn_embed_dim"],
            architecture[f"{side}_attention_heads"],
            vocabulary if side == "decoder" else 0,
            attentions,
        )
        for side, attentions in (("encoder", 1), ("decoder", 2))
    )


def epoch(sides: tuple[Transformer, Transformer], source: dict, n: int | None = None) -> float:
    """Return the operations of one training epoch; documents have ``n`` pieces, sentences the corpus's average."""
    corpus = corpus_of(source)
    length = n or PIECES[corpus]
    return pairs_of(source) * PIECES[corpus] * sum(side.operations(length, training=True) for side in sides)


def training_of(name: str, count: int, section: dict, training: dict, source: dict, n: int | None = None) -> Job:
    """Return the job of training a translation model."""
    sides = translator(section["architecture"], section["merges"])
    operations = training["max_epoch"] * epoch(sides, source, n)
    length = n or PIECES[corpus_of(source)]
    memory = sum(side.memory(training["max_tokens"], length) for side in sides)
    return Job(name, count, operations, memory, disk=3 * 4 * sum(s.weights + s.width * s.vocabulary for s in sides))


def translation(config: dict) -> list[Job]:
    """Return the jobs of translation under predicted graphs."""
    section, seeds = config["translation"], len(config["student_seeds"])
    jobs = []
    for pair, source in section["corpus"].items():
        pretraining = section["pretraining"]
        first = pretraining["corpus"][pair]
        name = f"translation {pair}: pretrain, {corpus_of(first)}"
        jobs.append(training_of(name, 1, section, pretraining["training"], first))
        jobs.append(training_of(f"translation {pair}: fine-tune", 1, section, section["training"], source))
    decoder = translator(section["architecture"], section["merges"])[1]
    points = members(section["replaced"]["methods"]) * len(section["replaced"]["windows"])
    sentence = TEST_PIECES * section["decoding"]["beam"] * decoder.operations(TEST_PIECES, training=False)
    pairs = len(section["corpus"])
    graphs = sum(section["graphs"][split] for split in ("train", "valid"))
    disk = graphs * decoder.layers * TEST_PIECES * 2 * decoder.width * 4
    jobs.append(
        Job("translation: BLEU under predicted graphs", pairs * seeds, points * TEST_SENTENCES * sentence, disk=disk)
    )
    return jobs


def characters(config: dict) -> list[Job]:
    """Return the jobs of the character language models."""
    section = config["char_lm"]
    sizes, recipe = section["sizes"], section["recipe"]
    jobs = []
    for name, model in section["models"].items():
        context = recipe["length"] + model.get("memory_length", model.get("maximal_span", 0))
        transformer = Transformer(sizes["layers"], sizes["dimension"], sizes["inner"], sizes["heads"], 256)
        tokens = recipe["steps"] * section["rows"]["train"] * recipe["length"]
        memory = transformer.memory(recipe["length"] * section["rows"]["train"], context)
        count = len(section["corpora"]) * len(section["seeds"])
        jobs.append(Job(f"characters: {name}", count, tokens * transformer.operations(context, training=True), memory))
    return jobs


def forms(config: dict) -> list[Job]:
    """Return the jobs of the attention forms."""
    jobs = []
    for unit, section in config["forms"].items():
        # Full attention has no budget.
        models = sum(
            len(run["seeds"]) * (len(run["budgets"]) * len(set(run["forms"]) - {"Full"}) + ("Full" in run["forms"]))
            for run in section["runs"]
        )
        for pair, source in section["corpus"].items():
            n = section["block_words"] if unit == "documents" else None
            name = f"forms, {unit}, {pair}: one model"
            jobs.append(training_of(name, models, section, section["training"], source, n))
    return jobs


def normalizer_speed(config: dict) -> list[Job]:
    """Return the jobs that compare the training speed of normalisers."""
    section, corpus = config["normalizer_speed"], "iwslt14"
    training, sides = section["training"], translator(section["architecture"], section["merges"])
    tokens = training["max_update"] * training["update_freq"] * training["max_tokens"]
    operations = tokens * sum(side.operations(PIECES[corpus], training=True) for side in sides)
    memory = sum(side.memory(training["max_tokens"], PIECES[corpus]) for side in sides)
    return [Job("normalisers: one model", len(CONTENDERS), operations, memory)]


def jobs_of(config: dict) -> list[Job]:
    """Return the jobs of a configuration that need a GPU."""
    return masked_lm(config) + translation(config) + characters(config) + forms(config) + normalizer_speed(config)


def measured(layers: int, width: int, n: int, batch: int, steps: int = 3) -> tuple[float, float]:
    """Return the operations of a small model's training step, and its median seconds on this machine."""
    config = RobertaConfig(
        vocab_size=4096,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
        max_position_embeddings=n + 2,
    )
    model = RobertaForMaskedLM(config)
    use_attention(model)
    ids = torch.randint(5, 4096, (batch, n))
    labels = torch.where(torch.rand(ids.shape) < 0.15, ids, -100)
    optimiser = torch.optim.AdamW(model.parameters())
    seconds = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        masked_loss(model, ids, labels).backward()
        optimiser.step()
        optimiser.zero_grad()
        seconds.append(time.perf_counter() - start)
    shape = Transformer(layers, width, 4 * width, width // 64, 4096)
    return batch * n * shape.operations(n, training=True, projected=0.15), sorted(seconds[1:])[steps // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tflops",
        type=float,
        default=75.0,
        help="sustained TFLOP/s in training (default: 75); an H200 reaches ten times that in matrix products alone",
    )
    parser.add_argument("--config", type=Path, default=ROOT / "config/paper.yaml", help="paper.yaml, or a cut of it")
    arguments = parser.parse_args()
    rate = arguments.tflops * 1e12
    config = yaml.safe_load(arguments.config.read_text())
    print(f"Measured on {hardware()}:")
    for layers, width, n, batch in ((4, 256, 128, 16), (6, 512, 512, 4)):
        operations, seconds = measured(layers, width, n, batch)
        print(
            f"  {layers} layers of {width}, {batch} x {n} tokens: {operations / 1e9:8.1f} GFLOP in {seconds:6.3f} s"
            f" = {operations / seconds / 1e9:6.1f} GFLOP/s"
        )
    local_rate = operations / seconds
    print(f"\nGPU hours assume {rate / 1e12:g} TFLOP/s sustained; hours here use the rate of the larger size.\n")
    print(
        f"{'job':48} {'number':>6} {'GPU h each':>11} {'GPU h':>9} {'hours here':>11} {'memory GiB':>11} {'disk GiB':>9}"
    )
    total = 0.0
    for job in jobs_of(config):
        hours = job.operations / rate / 3600
        total += hours * job.count
        local_hours = job.operations * job.count / local_rate / 3600
        print(
            f"{job.name:48} {job.count:6} {hours:11.2f} {hours * job.count:9.1f} {local_hours:11,.0f}"
            f" {job.memory / GIB:11.1f} {job.disk * job.count / GIB:9.1f}"
        )
    print(f"{'all':48} {'':6} {'':11} {total:9.1f}")
    print(
        "\nNot included: predictions, timings, figures."
        "\nLarger corpora: graphs are written and read a batch at a time, and texts a line at a time. Binarized translation"
        "\ncorpora are memory-mapped. The masked LM keeps its tokens in one tensor in memory (eight bytes each; two would be"
        "\nenough) and each layer's graphs in one file. Beyond a few hundred GiB, both would have to be split into shards."
    )


if __name__ == "__main__":
    main()
