"""Translators of sentences and documents, trained with each attention form of the companion papers."""

from collections.abc import Iterator

from replication.run.layout import FORM_TABLES, TRANSLATOR_FILES
from replication.run.text_places import ParallelPlace, parallel_place_names
from replication.run.trained import cell_jobs
from replication.steps.step import Declaring, Step


def form_steps(at: Declaring) -> Iterator[Step]:
    """Yield the steps that train and measure several models each, because starting a job for each would take longer."""
    for place in parallel_place_names(at.run):
        if not place.startswith("forms/"):
            continue
        text = ParallelPlace(at.run, place)
        files, section, base = text.files, text.section, text.section_key
        trained = cell_jobs(section, lambda cell, place=place: f"{place}/{cell.name}" not in at.imported)
        for _, cells in trained:
            models = {f"{base}/runs": [cell.columns for cell in cells]}
            yield Step(
                command="train_forms",
                message=f"Train translators with attention forms, {place}, models: {len(cells)}",
                place=place,
                options={"cell": [cell.name for cell in cells]},
                reads=[files.data],
                makes=[files.cell(cell.name) / file for cell in cells for file in TRANSLATOR_FILES],
                sees=at.see(base, "architecture", "training") | models,
            )
        for _, cells in cell_jobs(section):
            models = {f"{base}/runs": [cell.columns for cell in cells]}
            yield Step(
                command="measure_forms",
                message=f"Measure translators with attention forms, {place}, models: {len(cells)}",
                place=place,
                options={"cell": [cell.name for cell in cells]},
                reads=[
                    files.folder / "corpus",
                    files.data,
                    *(files.cell(cell.name) / "model.safetensors" for cell in cells),
                ],
                makes=[files.cell(cell.name) / file for cell in cells for file in (*FORM_TABLES, "map.safetensors")],
                sees=at.see(base, "beam", "tested", "corpus", "block_words") | models,
                priority=1,
            )
