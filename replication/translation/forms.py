"""Options and evaluation of translators with one of the nine attention forms of Extremely Sparse Transformer."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pandas as pd
import torch
from torch import Tensor

from replication.translation.evaluation import ceiling, score, sentence_counts, to_text
from replication.translation.model import Translator
from sparselib.control import LayerCall
from sparselib.forms import form

FULL, TOP_K = "Full", "Top-k"
#: Variants from XST's text (sections 6.1 and 6.2), as the forms of self- and cross-attention.
WITH_ANOTHER_CROSS_FORM = {"Top-k self": (TOP_K, FULL), "Top-k OOW cross": ("Top-k OOW", TOP_K)}


def form_options(name: str, budget: int | None) -> dict[str, object]:
    """Return fairseq's options for a form with a budget of attended positions; Full needs no budget.

    Raises
    ------
    ValueError
        If the form is unknown, or the budget is missing or below 1.
    """
    if budget is None and name != FULL:
        raise ValueError(f"`budget` must be at least 1 for the form {name}, got None")
    self_form, cross_form = WITH_ANOTHER_CROSS_FORM.get(name, (name, None))
    form(self_form, 1 if budget is None else budget)
    if name == FULL:
        return {"attention_normalizer": "softmax"}
    options = {"attention_form": self_form, "attention_budget": budget}
    return options if cross_form is None else options | {"attention_cross_form": cross_form}


@contextmanager
def attending_fully(translator: Translator) -> Iterator[None]:
    """Let a translator attend to all visible pairs inside the block (EST, "sparsified only in training")."""
    with ExitStack() as stack:
        for control in translator.model.attention_controls.values():
            stack.enter_context(control.restricted_to(None))
        yield


def measure(
    translator: Translator, split: str, references: list[str], beam: int, batch_tokens: int
) -> tuple[dict[str, object], pd.DataFrame]:
    """Measure the BLEU of beam search over a split, and the attended positions per query.

    Parameters
    ----------
    translator : Translator
        The model and its data.
    split : str
        Split of the data.
    references : list of str
        Target text of the first sentences of the split, which are translated.
    beam : int
        Beam size.
    batch_tokens : int
        Tokens per batch.

    Returns
    -------
    row : dict
        ``sentences, beam, bleu, ceiling, signature``, and ``attended_<place>`` as from :func:`attended`.
    counts : DataFrame
        BLEU's counts per sentence.
    """
    pieces = translator.translate(split, len(references), beam, batch_tokens)
    language = translator.task.cfg.target_lang
    text = to_text(translator, pieces)
    bleu, signature = score(text, references, language)
    counts = attended(translator, split, len(references), batch_tokens)
    row = {"sentences": len(references), "beam": beam, "bleu": bleu, "signature": signature}
    row["ceiling"] = ceiling(translator, split, references)
    row |= {f"attended_{place}": count for place, count in counts.items()}
    return row, sentence_counts(text, references, language)


@torch.no_grad()
def attended(translator: Translator, split: str, count: int, batch_tokens: int) -> dict[str, float]:
    """Return the mean attended positions per query in each place, teacher-forced: over `count` sentences, layers and heads."""
    dataset, padding = translator.dataset(split), translator.dictionary.pad()
    controls = translator.model.attention_controls
    pairs, rows = dict.fromkeys(controls, 0), dict.fromkeys(controls, 0)
    for sample in translator.batches(dataset, list(range(count)), batch_tokens):
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
