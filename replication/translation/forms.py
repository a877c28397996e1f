"""Translators that attend by one of the nine forms of Extremely Sparse Transformer: trained with it, and measured."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pandas as pd
import torch
from torch import Tensor

from replication.translation.evaluation import score, sentence_counts, to_text
from replication.translation.model import Translator
from sparselib.control import LayerCall
from sparselib.forms import form

FULL, TOP_K = "Full", "Top-k"
#: Forms by the names that XST's text gives no row of its own: with another form in cross-attention (sections 6.1 and 6.2).
WITH_ANOTHER_CROSS_FORM = {"Top-k self": (TOP_K, FULL), "Top-k OOW cross": ("Top-k OOW", TOP_K)}


def form_options(name: str, budget: int | None) -> dict[str, object]:
    """fairseq's options of a form at a budget of k attended positions; Full needs none.

    Raises
    ------
    ValueError
        If the form is unknown, or the budget missing or below 1.
    """
    if budget is None and name != FULL:
        raise ValueError(f"budget: the form {name} needs one, at least 1")
    own, cross = WITH_ANOTHER_CROSS_FORM.get(name, (name, None))
    form(own, 1 if budget is None else budget)
    if name == FULL:
        return {"attention_normalizer": "softmax"}
    options = {"attention_form": own, "attention_budget": budget}
    return options if cross is None else options | {"attention_cross_form": cross}


@contextmanager
def attending_fully(translator: Translator) -> Iterator[None]:
    """Inside, a translator attends to everything, whatever it was trained with (EST, "sparsified only in training")."""
    with ExitStack() as stack:
        for control in translator.model.attention_controls.values():
            stack.enter_context(control.restricted_to(None))
        yield


def measure(
    translator: Translator, split: str, references: list[str], words: str, beam: int, batch_tokens: int
) -> tuple[dict[str, object], pd.DataFrame]:
    """BLEU of beam search over a split, and how many positions a query attends to, as ``attended_<place>``.

    If there are fewer references than sentences, the first ones are translated.

    The table has the counts of every sentence that BLEU adds up.
    """
    pieces = translator.translate(split, len(references), beam, batch_tokens)
    text = to_text(pieces, words, translator.task.cfg.target_lang)
    bleu, signature = score(text, references)
    counts = attended(translator, split, batch_tokens)
    row = {"sentences": len(references), "beam": beam, "bleu": bleu, "signature": signature}
    return row | {f"attended_{place}": count for place, count in counts.items()}, sentence_counts(text, references)


@torch.no_grad()
def attended(translator: Translator, split: str, batch_tokens: int) -> dict[str, float]:
    """Attended positions per query, mean over sentences, layers and heads, in each place; teacher-forced."""
    dataset, padding = translator.dataset(split), translator.dictionary.pad()
    controls = translator.model.attention_controls
    pairs, rows = dict.fromkeys(controls, 0), dict.fromkeys(controls, 0)
    for sample in translator.batches(dataset, list(range(len(dataset))), batch_tokens):
        source, target = (sample["net_input"][name] != padding for name in ("src_tokens", "prev_output_tokens"))
        with ExitStack() as stack:
            for place, control in controls.items():
                real = source if place == "encoder" else target

                def count(call: LayerCall, mask: Tensor, place=place, real=real) -> None:
                    full = mask.expand(*call.q.shape[:3], call.k.shape[2])
                    pairs[place] += int(full.sum(-1).mul(real[:, None]).sum())
                    rows[place] += int(real.sum()) * call.q.shape[1]

                stack.enter_context(control.observing(count))
            translator.model(**sample["net_input"])
    return {place: pairs[place] / rows[place] for place in controls}
