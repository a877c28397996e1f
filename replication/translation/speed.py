"""How fast one translator trains and decodes with each normaliser: Table 25 of Explicit Sparse Transformer, in one run."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median

import pandas as pd
import torch
from fairseq.trainer import Trainer

from replication.timing.clock import median_seconds, repeated_seconds
from replication.translation.contenders import CONTENDERS, SOFTMAX, TOP_K, Contender
from replication.translation.evaluation import score, sentence_counts, to_text
from replication.translation.fairseq.normalizers import LearnedEntmax
from replication.translation.model import Translator, load_translator
from replication.translation.normalizers import attended, normalizer_runs
from sparselib.checks import at_least

#: Measures of the table that are compared with those of softmax: more is faster.
SPEEDS = ("train", "decode", "normalizer")


def measure(
    data: Path, references: list[str], words: str, *, repeats: int, beam: int, batch: int, models: Path
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, object]]:
    """Time training, decoding and the normaliser alone of one model trained with each of the contenders.

    What is timed runs ``repeats`` times, after once that does not count, and the median counts. Contenders take turns, so that
    a disturbance of the machine hits all alike.

    - Decoding: beam search on the whole test set in batches of ``batch`` sentences. Tokens are the pieces of the best
      hypotheses and their ends.
    - The normaliser alone: forward and backward, on the scores of the softmax model in all its layers, for the batch of test
      sentences of middling length.
    - Training: an update of the trained model with fairseq's ``Trainer`` (dropout, loss, backward, clipping, Adam), on the
      batch of training sentences of middling length, in the precision and as large as in training.

    Parameters
    ----------
    data : folder of :func:`replication.translation.data.binarize`, with a test split
    references : target text of the test split
    models : folder of the translators, each where its :class:`~replication.translation.contenders.Contender` says

    Returns
    -------
    table
        A row per contender: ``contender, implementation, updates, train_tokens_per_second, decode_tokens_per_second,
        train_repeats, decode_repeats`` (what these are the medians of), ``normalizer_seconds, bleu, attended`` (mean number of
        keys with a weight above 0), ``decoded_tokens``, and the speeds relative to softmax, ``train_relative, decode_relative,
        normalizer_relative``.
    sentences
        A row per contender and test sentence: what BLEU adds up, :func:`~replication.translation.evaluation.sentence_counts`.
    details
        ``pair``, ``top_k``, ``device``, ``threads``, BLEU's ``signature``, and the learned ``alphas`` by implementation, place,
        layer and head.

    Raises
    ------
    FileNotFoundError
        If there are no such data, or not all models.
    ValueError
        If a number is below 1.
    """
    for name, value in {"repeats": repeats, "beam": beam, "batch": batch}.items():
        at_least(name, value, 1)
    paths = {contender: contender.folder(models) / "model.safetensors" for contender in CONTENDERS}
    translators = {contender: load_translator(path, data) for contender, path in paths.items()}
    task, options = translators[SOFTMAX].task.cfg, translators[TOP_K].configuration
    device = translators[SOFTMAX].device.type
    hypotheses: dict[Contender, list[str]] = {}

    def decoding(contender: Contender) -> Callable[[], None]:
        def run() -> None:
            found = translators[contender].translate("test", len(references), beam, batch_sentences=batch)
            hypotheses[contender] = found

        return run

    seconds = repeated_seconds({contender: decoding(contender) for contender in CONTENDERS}, repeats, device)
    alone = median_seconds(normalizer_runs(translators, translators[SOFTMAX], "test", batch), repeats, device)
    kept = {contender: attended(translator, "test", batch) for contender, translator in translators.items()}
    alphas = {contender.implementation: learned_alphas(translator) for contender, translator in translators.items()
              if contender.name == "entmax_alpha"}  # fmt: skip
    # The last, as it changes the models.
    runs, trained_tokens = update_runs(translators)
    update = repeated_seconds(runs, repeats, device)
    rows, sentences = [], []
    for contender, pieces in hypotheses.items():
        tokens = sum(len(line.split()) + 1 for line in pieces)
        text = to_text(pieces, words, task.target_lang)
        bleu, signature = score(text, references)
        whose = {"contender": contender.name, "implementation": contender.implementation}
        sentences.append(sentence_counts(text, references).assign(**whose))
        rows.append(
            whose
            | {
                "updates": options.optimization.max_update,
                "train_tokens_per_second": trained_tokens / median(update[contender]),
                "decode_tokens_per_second": tokens / median(seconds[contender]),
                "train_repeats": " ".join(f"{trained_tokens / one:.6g}" for one in update[contender]),
                "decode_repeats": " ".join(f"{tokens / one:.6g}" for one in seconds[contender]),
                "normalizer_seconds": alone[contender],
                "bleu": bleu,
                "attended": kept[contender],
                "decoded_tokens": tokens,
            }
        )
    details = {"pair": f"{task.source_lang}-{task.target_lang}", "top_k": options.model.attention_k, "device": device}
    details |= {"threads": torch.get_num_threads(), "signature": signature, "alphas": alphas}
    return relative_to_softmax(pd.DataFrame(rows)), pd.concat(sentences, ignore_index=True), details


def update_runs(translators: Mapping[Contender, Translator]) -> tuple[dict[Contender, Callable[[], None]], int]:
    """For each model, one update on the same batch, by fairseq's trainer as the model was trained; and its target tokens."""
    runs, samples, tokens = {}, [], 0
    for contender, translator in translators.items():
        cfg = translator.configuration
        trainer = Trainer(cfg, translator.task, translator.model, translator.task.build_criterion(cfg.criterion))
        if not samples:
            dataset = translator.dataset("train")
            batches = list(translator.batches(dataset, list(range(len(dataset))), cfg.dataset.max_tokens))
            samples = [batches[len(batches) // 2]] * cfg.optimization.update_freq[0]
            tokens = sum(sample["ntokens"] for sample in samples)
        runs[contender] = partial(trainer.train_step, samples)
    return runs, tokens


def relative_to_softmax(table: pd.DataFrame) -> pd.DataFrame:
    """The table with ``<measure>_relative`` for each of :data:`SPEEDS`: how many times as fast as softmax."""
    fast = {
        "train": table["train_tokens_per_second"],
        "decode": table["decode_tokens_per_second"],
        "normalizer": 1 / table["normalizer_seconds"],
    }
    softmax = table["contender"] == SOFTMAX.name
    return table.assign(**{f"{name}_relative": fast[name] / fast[name][softmax].item() for name in SPEEDS})


def learned_alphas(translator: Translator) -> dict[str, list[list[float]]]:
    """The alphas of each place: a list per layer, of one per head."""
    return {
        place: [
            normalizer.alpha.tolist()
            for normalizer in map(control.normalizer_of, range(control.layers))
            if isinstance(normalizer, LearnedEntmax)
        ]
        for place, control in translator.model.attention_controls.items()
    }
