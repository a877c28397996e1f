"""Language models of symbols: character models with a memory, and Sparse Transformers' patterns on text and pixels.

Each section trains models of one size and measures n-gram baselines, with a folder per corpus.
"""

from collections.abc import Iterator

from replication.run.layout import ALL_SPLITS, CHARACTER_FILES, CHARACTER_TABLES
from replication.run.places import symbol_place, symbol_place_names
from replication.run.trained import members
from replication.steps.step import Declaring, Step, text_of


def symbol_steps(at: Declaring) -> Iterator[Step]:
    """Yield the steps of every corpus of characters or pixels."""
    for place in symbol_place_names(at.run):
        section, files = symbol_place(at.run, place)
        base, _, corpus = place.rpartition("/")
        text = [files.text(split) for split in ALL_SPLITS]
        yield Step(
            command="characters",
            message=f"Prepare the text {place}",
            place=place,
            text=text_of(section.corpora[corpus], ALL_SPLITS),
            makes=[*text, files.summary],
            sees=at.see(f"{base}/corpora", corpus),
        )
        models = members(section.models)
        folders = [files.model(model, seed) for model in models for seed in section.seeds]
        for model in models:
            for seed in section.seeds:
                if f"{place}/models/{model}/seed{seed}" in at.imported:
                    continue
                yield Step(
                    command="train_characters",
                    message=f"Train {model} on {place}, seed {seed}",
                    place=place,
                    options={"model": model, "seed": seed},
                    reads=text,
                    makes=[files.model(model, seed) / file for file in CHARACTER_FILES],
                    sees=at.see(base, "sizes", "recipe", "rows") | at.see(f"{base}/models", model),
                )
        names = {f"{base}/models": list(models)}
        # One process measures all models of a corpus, because each takes only a second.
        yield Step(
            command="measure_characters",
            message=f"Evaluate the models of {place}",
            place=place,
            reads=[*text, *_trained(folders)],
            makes=[folder / table for folder in folders for table in CHARACTER_TABLES],
            sees=at.see(base, "seeds") | names,
        )
        yield Step(
            command="character_baselines",
            message=f"Measure the n-gram baselines of {place}",
            place=place,
            reads=text,
            makes=[files.baselines],
        )
        if not base.startswith("patterns/"):
            continue
        yield Step(
            command="attention_parts",
            message=f"Measure where dense heads attend on {place}",
            place=place,
            reads=[
                files.text("train"),
                files.text("test"),
                *_trained(files.model("dense", seed) for seed in section.seeds),
            ],
            makes=[files.parts],
            sees=at.see(base, "seeds") | at.see(f"{base}/models/dense", "width"),
        )
        yield Step(
            command="time_steps",
            message=f"Time training steps on {place}",
            place=place,
            reads=[files.text("train"), *_trained(files.model(model, section.seeds[0]) for model in models)],
            makes=[files.steps],
            sees=at.see(base, "timed_steps") | {f"{base}/seeds": section.seeds[0]} | names,
            cores="all",
        )


def _trained(folders):
    return [folder / file for folder in folders for file in ("model.safetensors", "training.json")]
