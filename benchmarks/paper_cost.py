"""What config/paper.yaml would take: GPU hours, memory and disk of its jobs, estimated.

Operations are counted from the configuration: six per weight and token of training, two of evaluation, attention's own. It is
checked where there is no GPU: two sizes of the masked language model train a few steps here, and the time per counted operation
should not depend on the size. Hours on a GPU follow from a sustained rate, which is an assumption: ``--tflops``.

Run: python benchmarks/paper_cost.py [--tflops 75]
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import yaml
from transformers import RobertaConfig, RobertaForMaskedLM

from replication.files.storage import hardware
from replication.graphs.grids import expand
from replication.masked_lm.model import masked_loss
from replication.translation.contenders import CONTENDERS
from sparselib.huggingface import use_attention

ROOT = Path(__file__).parents[1]
GIB = 2**30
#: Sentence pairs of the corpora, which lie on the hub, as the cards of the data sets say: para_crawl 7.1, IWSLT 2014, 2015 and
#: 2017, WMT 2014 and 2016; and subwords of a sentence, about 1.3 per word.
PAIRS = {
    "ende": 97_000_000,
    "enfr": 104_000_000,
    "iwslt2017": 230_000,
    "iwslt2014": 160_000,
    "iwslt2015": 133_000,
    "wmt16": 610_000,
    "wmt14": 4_500_000,
}
PIECES = {"iwslt2017": 24, "iwslt2014": 24, "iwslt2015": 25, "wmt16": 27, "wmt14": 28, "ende": 26, "enfr": 28}
#: Sentences of the test sets that graphs and BLEU are of.
TEST_PIECES, TEST_SENTENCES = 25, 1_100


@dataclass(frozen=True)
class Transformer:
    layers: int
    width: int
    inner: int
    heads: int
    vocabulary: int
    #: Attentions per layer, and with them projections: two in a decoder.
    attentions: int = 1

    @property
    def weights(self) -> int:
        """Without embeddings, which are looked up; the projection to the vocabulary is counted by its own."""
        return self.layers * (self.attentions * 4 * self.width**2 + 2 * self.width * self.inner)

    def operations(self, n: int, *, training: bool, projected: float = 1.0) -> float:
        """Per token of sequences of ``n``; ``projected`` is the share of tokens that are projected to the vocabulary."""
        forward = 2 * (self.weights + projected * self.width * self.vocabulary)
        forward += 4 * self.layers * self.attentions * n * self.width
        return (3 if training else 1) * forward

    def memory(self, tokens: int, keys: int) -> float:
        """Bytes in training, of which each of a step's tokens sees so many keys.

        Weights, gradients and Adam's moments in float32, and activations in half precision: Korthikanti et al. (2022), Eq. 2.
        """
        every = self.weights + self.width * self.vocabulary
        activations = self.layers * tokens * self.width * (34 + 5 * self.heads * keys / self.width)
        return 16 * every + activations


@dataclass(frozen=True)
class Job:
    name: str
    count: int
    #: Of one of them.
    operations: float
    memory: float = 0.0
    disk: float = 0.0


def members(methods: dict) -> int:
    return len(expand(methods))


def masked_lm(config: dict) -> list[Job]:
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
    # Both versions of Sparsefinder, the second for every number of clusters, and BigBird with two normalisers.
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
    said = f"{source['name']} {source.get('configuration', '')}".lower()
    return next(name for name in PAIRS if name in said or name in said.replace("_", "").replace("/", ""))


def translator(architecture: dict, vocabulary: int) -> tuple[Transformer, Transformer]:
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


def epoch(sides: tuple[Transformer, Transformer], corpus: str, n: int | None = None) -> float:
    """Operations of a pass over a corpus, of both sides; its segments have ``n`` pieces where they are documents."""
    length = n or PIECES[corpus]
    return PAIRS[corpus] * PIECES[corpus] * sum(side.operations(length, training=True) for side in sides)


def training_of(name: str, count: int, section: dict, training: dict, corpus: str, n: int | None = None) -> Job:
    sides = translator(section["architecture"], section["merges"])
    operations = training["max_epoch"] * epoch(sides, corpus, n)
    length = n or PIECES[corpus]
    memory = sum(side.memory(training["max_tokens"], length) for side in sides)
    return Job(name, count, operations, memory, disk=3 * 4 * sum(s.weights + s.width * s.vocabulary for s in sides))


def translation(config: dict) -> list[Job]:
    section, seeds = config["translation"], len(config["student_seeds"])
    jobs = []
    for pair, source in section["corpus"].items():
        pretraining = section["pretraining"]
        first = corpus_of(pretraining["corpus"][pair])
        jobs.append(training_of(f"translation {pair}: pretrain, {first}", 1, section, pretraining["training"], first))
        jobs.append(training_of(f"translation {pair}: fine-tune", 1, section, section["training"], corpus_of(source)))
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
    section = config["char_lm"]
    sizes, recipe = section["sizes"], section["recipe"]
    jobs = []
    for name, model in section["models"].items():
        context = recipe["length"] + model.get("memory_length", model.get("maximal_span", 0))
        one = Transformer(sizes["layers"], sizes["dimension"], sizes["inner"], sizes["heads"], 256)
        tokens = recipe["steps"] * section["rows"]["train"] * recipe["length"]
        memory = one.memory(recipe["length"] * section["rows"]["train"], context)
        count = len(section["corpora"]) * len(section["seeds"])
        jobs.append(Job(f"characters: {name}", count, tokens * one.operations(context, training=True), memory))
    return jobs


def forms(config: dict) -> list[Job]:
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
            jobs.append(training_of(name, models, section, section["training"], corpus_of(source), n))
    return jobs


def normalizer_speed(config: dict) -> list[Job]:
    section, corpus = config["normalizer_speed"], "iwslt2014"
    training, sides = section["training"], translator(section["architecture"], section["merges"])
    tokens = training["max_update"] * training["update_freq"] * training["max_tokens"]
    operations = tokens * sum(side.operations(PIECES[corpus], training=True) for side in sides)
    memory = sum(side.memory(training["max_tokens"], PIECES[corpus]) for side in sides)
    return [Job("normalisers: one model", len(CONTENDERS), operations, memory)]


def measured(layers: int, width: int, n: int, batch: int, steps: int = 3) -> tuple[float, float]:
    """Operations of a training step of a small model on this machine, and its seconds: the median of a few."""
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tflops",
        type=float,
        default=75.0,
        help="sustained by training; an H200 does ten times that in products alone",
    )
    rate = parser.parse_args().tflops * 1e12
    config = yaml.safe_load((ROOT / "config/paper.yaml").read_text())
    print(f"Measured on {hardware()}:")
    for layers, width, n, batch in ((4, 256, 128, 16), (6, 512, 512, 4)):
        operations, seconds = measured(layers, width, n, batch)
        print(
            f"  {layers} layers of {width}, {batch} x {n} tokens: {operations / 1e9:8.1f} GFLOP in {seconds:6.3f} s"
            f" = {operations / seconds / 1e9:6.1f} GFLOP/s"
        )
    here = operations / seconds
    print(f"\nGPU hours at {rate / 1e12:g} TFLOP/s sustained (assumed); hours here at the larger size's rate.\n")
    print(
        f"{'job':48} {'number':>6} {'GPU h each':>11} {'GPU h':>9} {'hours here':>11} {'memory GiB':>11} {'disk GiB':>9}"
    )
    total = 0.0
    for job in masked_lm(config) + translation(config) + characters(config) + forms(config) + normalizer_speed(config):
        hours = job.operations / rate / 3600
        total += hours * job.count
        here_too = job.operations * job.count / here / 3600
        print(
            f"{job.name:48} {job.count:6} {hours:11.2f} {hours * job.count:9.1f} {here_too:11,.0f}"
            f" {job.memory / GIB:11.1f} {job.disk * job.count / GIB:9.1f}"
        )
    print(f"{'all':48} {'':6} {'':11} {total:9.1f}")
    print(
        "\nNot counted: predicting, timings, figures."
        "\nA corpus of internet size: graphs are written and read a batch at a time, texts a line at a time; a translator's"
        "\nbinarized corpus is mapped into memory, not read. The masked LM's tokens are one tensor in memory (two bytes would"
        "\ndo for each, eight are used), and a layer's graphs one file: beyond some hundred GiB both are to be cut into shards."
    )


if __name__ == "__main__":
    main()
