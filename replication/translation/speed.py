"""Training and decoding speed of one translator per normaliser (Table 25 of Explicit Sparse Transformer)."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median

import pandas as pd
import torch
from fairseq.trainer import Trainer

from replication.timing.clock import median_seconds, repeated_seconds
from replication.translation.contenders import CONTENDERS, SOFTMAX, TOP_K, Contender
from replication.translation.evaluation import ceiling, score, sentence_counts, to_text
from replication.translation.fairseq.normalizers import LearnedEntmax
from replication.translation.model import Translator, load_translator
from replication.translation.normalizers import attended, normalizer_runs
from sparselib.checks import at_least

#: Speeds that the table reports relative to softmax.
SPEEDS = ("train", "decode", "normalizer")


def measure(
    data: Path, references: list[str], *, repeats: int, beam: int, batch: int, models: Path
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, object]]:
    """Time training, decoding and the normaliser alone, for a model trained with each contender.

    Every time is the median of ``repeats`` runs after one warm-up run. Contenders take turns, so that a disturbance of the
    machine affects all of them.

    - Decoding is beam search on the whole test set in batches of ``batch`` sentences. Its tokens are the pieces and end marks
      of the best hypotheses.
    - The normaliser runs forward and backward on the softmax model's scores in all layers, for the test batch of median length.
    - Training is one update of the trained model by fairseq's ``Trainer`` (dropout, loss, backward, clipping, Adam), on the
      training batch of median length, with the precision and batch size of the original training.

    Parameters
    ----------
    data : Path
        Folder of :func:`replication.translation.data.binarize`, with a test split.
    references : list of str
        Target text of the test split.
    repeats : int
        Timed runs per contender.
    beam : int
        Beam size.
    batch : int
        Sentences per batch.
    models : Path
        Folder of the translators; :class:`~replication.translation.contenders.Contender` gives the subfolder of each.

    Returns
    -------
    table : DataFrame
        A row per contender. ``contender, implementation, updates`` identify the model. ``train_tokens_per_second`` and
        ``decode_tokens_per_second`` are medians of ``train_repeats`` and ``decode_repeats``. ``attended`` is the mean number of
        keys with nonzero weight. Further columns are ``normalizer_seconds, bleu, ceiling,
        decoded_tokens``, and the speeds relative to softmax, ``train_relative, decode_relative, normalizer_relative``.
    sentences : DataFrame
        A row per contender and test sentence, with :func:`~replication.translation.evaluation.sentence_counts`.
    details : dict
        ``pair``, ``top_k``, ``device``, ``threads``, BLEU's ``signature``, and the learned ``alphas`` by implementation, place,
        layer and head.

    Raises
    ------
    FileNotFoundError
        If the data or a model is missing.
    ValueError
        If ``repeats``, ``beam`` or ``batch`` is below 1.
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
            hypotheses[contender] = translators[contender].translate(
                "test", len(references), beam, batch_sentences=batch
            )

        return run

    seconds = repeated_seconds({contender: decoding(contender) for contender in CONTENDERS}, repeats, device)
    normalizer_seconds = median_seconds(
        normalizer_runs(translators, translators[SOFTMAX], "test", batch), repeats, device
    )
    attended_keys = {contender: attended(translator, "test", batch) for contender, translator in translators.items()}
    alphas = {contender.implementation: learned_alphas(translator) for contender, translator in translators.items()
              if contender.name == "entmax_alpha"}  # fmt: skip
    # Training updates change the models, so they run last.
    runs, trained_tokens = update_runs(translators)
    update_seconds = repeated_seconds(runs, repeats, device)
    rows, sentences, perfect = [], [], ceiling(translators[SOFTMAX], "test", references)
    for contender, pieces in hypotheses.items():
        tokens = sum(len(line.split()) + 1 for line in pieces)
        text = to_text(translators[contender], pieces)
        bleu, signature = score(text, references, task.target_lang)
        columns = {"contender": contender.name, "implementation": contender.implementation}
        sentences.append(sentence_counts(text, references, task.target_lang).assign(**columns))
        rows.append(
            columns
            | {
                "updates": options.optimization.max_update,
                "train_tokens_per_second": trained_tokens / median(update_seconds[contender]),
                "decode_tokens_per_second": tokens / median(seconds[contender]),
                "train_repeats": " ".join(f"{trained_tokens / value:.6g}" for value in update_seconds[contender]),
                "decode_repeats": " ".join(f"{tokens / value:.6g}" for value in seconds[contender]),
                "normalizer_seconds": normalizer_seconds[contender],
                "bleu": bleu,
                "ceiling": perfect,
                "attended": attended_keys[contender],
                "decoded_tokens": tokens,
            }
        )
    details = {"pair": f"{task.source_lang}-{task.target_lang}", "top_k": options.model.attention_k, "device": device}
    details |= {"threads": torch.get_num_threads(), "signature": signature, "alphas": alphas}
    return relative_to_softmax(pd.DataFrame(rows)), pd.concat(sentences, ignore_index=True), details


def update_runs(translators: Mapping[Contender, Translator]) -> tuple[dict[Contender, Callable[[], None]], int]:
    """Return one training update per model, all on the same batch, and the batch's target tokens.

    Each update runs in fairseq's trainer with the options that the model was trained with.
    """
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
    """Add a column ``<measure>_relative`` for each of :data:`SPEEDS`, the speed as a multiple of softmax's."""
    speeds = {
        "train": table["train_tokens_per_second"],
        "decode": table["decode_tokens_per_second"],
        "normalizer": 1 / table["normalizer_seconds"],
    }
    softmax = table["contender"] == SOFTMAX.name
    return table.assign(**{f"{name}_relative": speeds[name] / speeds[name][softmax].item() for name in SPEEDS})


def learned_alphas(translator: Translator) -> dict[str, list[list[float]]]:
    """Return the alphas of each place, as a list per layer with one alpha per head."""
    return {
        place: [
            normalizer.alpha.tolist()
            for normalizer in map(control.normalizer_of, range(control.layers))
            if isinstance(normalizer, LearnedEntmax)
        ]
        for place, control in translator.model.attention_controls.items()
    }
