"""A rehearsal of config/paper-week.yaml: its budget, the plan of all its jobs, and the first jobs of every task on stand-ins.

The stand-ins have the form of the hub's data sets and of RoBERTa, and are small: a two-layer model, and pairs of a few words.
"""

import importlib.util
import random
import subprocess
import sys

import pytest
import yaml
from datasets import Dataset, DatasetDict
from transformers import RobertaConfig, RobertaForMaskedLM

from replication.corpora.documents import Document, Sentence
from replication.corpora.tokens import train_tokenizer
from replication.files.paths import ROOT

sys.path.append(str(ROOT / "tests/replication"))
from command_line import succeed

WEEK = yaml.safe_load((ROOT / "config/paper-week.yaml").read_text())
HOURS = 7 * 24
#: Speed in training that the budget assumes, and the share of it that must be enough: nobody has run this profile.
FLOPS, ENOUGH = 75e12, 1 / 3
WORDS = [f"{start}{end}" for start in "bdfgklmnprst" for end in ("al", "er", "in", "os", "uta")]
#: Settings that are smaller in the rehearsal.
STEPS = (
    "gradient_accumulation_steps",
    "logging_steps",
    "log_interval",
    "max_epoch",
    "save_steps",
    "log_every",
    "update_freq",
)
FEW = dict.fromkeys(STEPS, 1) | dict.fromkeys(("max_steps", "max_update", "steps"), 2)
SIDES = [f"{side}_{size}" for side in ("encoder", "decoder") for size in ("embed_dim", "ffn_embed_dim")]
REHEARSED = FEW | dict.fromkeys(SIDES, 32) | {"fp16": False, "merges": 200, "sequences": 4}


def sentences(seed, count):
    generator = random.Random(seed)
    return [" ".join(generator.choices(WORDS, k=generator.randint(24, 40))) for _ in range(count)]


def pairs(first, second, rows):
    """Return a data set of the hub with the splits of IWSLT and ParaCrawl; the test split has rows for all slices."""
    return DatasetDict(
        {
            split: Dataset.from_list(
                [{"translation": {first: one, second: one[::-1]}} for one in sentences(number, count)]
            )
            for number, (split, count) in enumerate(rows.items())
        }
    )


def smaller(value, key=""):
    """Return settings with the values of the rehearsal, and row ranges and data sets' names left as they are."""
    if isinstance(value, dict):
        return {name: smaller(inner, name) for name, inner in value.items()}
    return REHEARSED.get(key, value) if not isinstance(value, list) else value


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("week")
    documents = [Document([Sentence(line.split()) for line in sentences(0, 50)])]
    tokenizer = train_tokenizer(documents, 300)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    model = RobertaForMaskedLM(RobertaConfig(vocab_size=len(tokenizer), max_position_embeddings=514 + 2, **sizes))
    model.save_pretrained(folder / "roberta")
    tokenizer.save_pretrained(folder / "roberta")
    text = {split: sentences(seed, 400) for seed, split in enumerate(("train", "validation", "test"))}
    wikitext = {split: Dataset.from_dict({"text": lines}) for split, lines in text.items()}
    DatasetDict(wikitext).save_to_disk(folder / "wikitext")
    for pair in ("en-de", "en-fr", "fr-en", "en-vi", "de-en"):
        rows = {"train": 330, "validation": 20, "test": 60}
        pairs(*pair.split("-"), rows).save_to_disk(folder / pair)
    (folder / "enwik8").write_text("\n".join(sentences(9, 4000)))
    settings = smaller(WEEK) | {"profile": "rehearsal", "gpus": 1}
    settings["masked_lm"] |= {"corpus": {"source": "hub", "name": str(folder / "wikitext")}, "layers": 2}
    for key in ("model", "tokenizer"):
        settings["masked_lm"][key] = {"pretrained": str(folder / "roberta")}
    settings["masked_lm"]["training"] |= {"bf16": False}
    settings["retrofit"]["corpus"] = settings["masked_lm"]["corpus"]
    translation = settings["translation"]
    sections = [translation, translation["pretraining"], *settings["forms"].values(), settings["normalizer_speed"]]
    for section in sections:
        for pair, corpus in section["corpus"].items():
            corpus["name"] = str(folder / pair)
            del corpus["configuration"]
    # The same slices of fewer rows.
    for pair in translation["corpus"].values():
        pair["names"] = {"valid": "test[:30]", "test": "test[30:60]"}
    for pair in translation["pretraining"]["corpus"].values():
        pair["names"] = {"train": "train[30:330]", "valid": "train[:30]"}
    settings["char_lm"]["sizes"] |= {"layers": 1, "dimension": 16, "heads": 2, "inner": 16}
    settings["char_lm"] |= {"rows": {"train": 2, "valid": 2, "test": 2}}
    settings["char_lm"]["corpora"]["enwik8"]["path"] = str(folder / "enwik8")
    (folder / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    return folder


def test_the_profile_fits_one_gpu_for_a_week():
    path = ROOT / "benchmarks/paper_cost.py"
    spec = importlib.util.spec_from_file_location("paper_cost", path)
    sys.modules["paper_cost"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def hours(config):
        return sum(job.operations * job.count for job in module.jobs_of(config)) / FLOPS / 3600

    assert hours(WEEK) < ENOUGH * HOURS
    assert hours(yaml.safe_load((ROOT / "config/paper.yaml").read_text())) > HOURS
    header = (ROOT / "config/paper-week.yaml").read_text().partition("\nprofile:")[0]
    assert f"about {round(hours(WEEK), -1):.0f} GPU hours" in " ".join(header.replace("#", "").split())
    assert all(job.memory < 80 * 2**30 for job in module.jobs_of(WEEK))


def test_all_its_jobs_are_planned(rehearsal):
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--dry-run",
        "--nolock",
        "--configfile",
        str(rehearsal / "config.yaml"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for rule in (
        "train_translation__translation_en_de",
        "train_translation__translation_en_de_pretraining",
        "train_masked_lm",
        "train_characters",
        "replace",
        "decode",
        "report",
    ):
        assert rule in done.stdout + done.stderr


#: Stages in the order of the workflow, with their places and options: every kind of text, and a training of every task.
STAGES = [
    ("corpus", "masked_lm", {}),
    ("tokenize", "masked_lm", {}),
    ("train-masked-lm", None, {}),
    ("perplexity", None, {}),
    ("extract", None, {}),
    ("parallel-corpus", "translation/en-de/pretraining", {}),
    ("binarize", "translation/en-de/pretraining", {}),
    ("train-translation", "translation/en-de/pretraining", {}),
    ("parallel-corpus", "translation/en-de", {}),
    ("binarize", "translation/en-de", {}),
    ("train-translation", "translation/en-de", {}),
    ("parallel-corpus", "forms/sentences/en-vi", {}),
    ("binarize", "forms/sentences/en-vi", {}),
    ("train-forms", "forms/sentences/en-vi", {"cell": "top-k_k8_seed0"}),
    ("parallel-corpus", "forms/documents/en-de", {}),
    ("characters", "char_lm/enwik8", {}),
    ("train-characters", "char_lm/enwik8", {"model": "transformer-xl-top-k", "seed": 0}),
    ("corpus", "retrofit", {}),
    ("tokenize", "retrofit", {}),
]


def test_the_first_jobs_of_every_task_run_on_stand_ins(rehearsal):
    for command, place, options in STAGES:
        succeed(rehearsal, command, *([place] if place else []), **options)
