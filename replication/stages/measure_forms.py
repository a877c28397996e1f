"""What translators with the attention forms of the companion papers achieve."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import BatchTokens, Beam, Data, References, Words, json_object


def measure_forms(
    data: Data,
    references: References,
    cell: Annotated[list[dict], typer.Option(parser=json_object, help="as for train-forms, repeated for every model")],
    beam: Beam,
    words: Words,
    output: Annotated[Path, typer.Option(help="folder of train-forms; the measures go into those of the models")],
    alignment: Annotated[Path | None, typer.Option(help="gold word alignment of the test set, 0-0 1-2 a line")] = None,
    split: Annotated[str, typer.Option(help="what is measured on")] = "test",
    tested: Annotated[
        int | None, typer.Option(min=1, help="the first so many of the split are translated; all if left out")
    ] = None,
    batch_tokens: BatchTokens = 4000,
) -> None:
    """Measure BLEU and attended positions of translators as trained, Top-k attending fully too, and their cross-attention."""
    import pandas as pd

    from replication.corpora.alignment import from_pharaoh
    from replication.files.storage import write_table, write_tensors
    from replication.translation.cross_attention import describe
    from replication.translation.forms import FULL, TOP_K, attending_fully, measure
    from replication.translation.model import load_translator

    links = alignment and [from_pharaoh(line) for line in alignment.read_text(encoding="utf-8").splitlines()]
    expected = references.read_text(encoding="utf-8").splitlines()[:tested]
    for one in cell:
        folder, own = output / one["name"], {key: one[key] for key in ("form", "budget", "seed")}
        translator = load_translator(folder / "model.safetensors", data)
        tested = {own["form"]: measure(translator, split, expected, words, beam, batch_tokens)}
        # "Sparsified only in training" is a claim about Top-k.
        if own["form"] == TOP_K:
            with attending_fully(translator):
                tested[FULL] = measure(translator, split, expected, words, beam, batch_tokens)
        rows = [{"tested_with": form} | row for form, (row, _) in tested.items()]
        counts = [counts.assign(tested_with=form, **own) for form, (_, counts) in tested.items()]
        concentration, (number, shown) = describe(translator, split, links, batch_tokens)
        header = {"number": number, "source_words": shown.source, "target_words": shown.target} | own
        write_tensors(folder / "map.safetensors", {"weights": shown.weights}, kind="cross-attention map", **header)
        # Full attention has no budget, and not every corpus says which words are translations of each other.
        empty = ["budget", "aligned_mass", "aligned_words"]
        write_table(folder / "cross_attention.csv", concentration.assign(**own), empty)
        write_table(folder / "sentences.parquet", pd.concat(counts, ignore_index=True), empty)
        write_table(folder / "measured.csv", pd.DataFrame(rows).assign(**own), empty)
