"""Image captioning: pictures, a model with each kind of attention, and their captions of the test images."""

from collections.abc import Iterator

from replication.run.layout import CAPTIONER_FILES, CAPTIONER_TABLES, Captioning
from replication.run.places import region_features
from replication.run.trained import members
from replication.steps.step import Declaring, Step, text_of

BASE = "captioning"


def captioning_steps(at: Declaring) -> Iterator[Step]:
    """Yield the steps of captioning."""
    section, files, regions = at.run.captioning, Captioning(at.results / BASE), region_features(at.run)
    drawn = [regions] if section.source.source == "scenes" else []
    source, models = at.see(BASE, "source"), members(section.models)
    yield Step(
        command="pictures",
        message="Prepare pictures with captions",
        text=text_of(section.source, ()),
        makes=[*drawn, files.pictures("train"), files.pictures("test"), files.summary],
        sees=source,
    )
    folders = []
    for model in models:
        for seed in section.seeds:
            folder = files.model(model, seed)
            folders.append(folder)
            if f"{BASE}/models/{model}/seed{seed}" not in at.imported:
                yield Step(
                    command="train_captioner",
                    message=f"Train the captioner {model}, seed {seed}",
                    options={"model": model, "seed": seed},
                    reads=[files.pictures("train"), regions],
                    makes=[folder / file for file in CAPTIONER_FILES],
                    sees=source | at.see(BASE, "architecture", "limits", "training") | at.see(f"{BASE}/models", model),
                )
    used = [file for file in CAPTIONER_FILES if file != "training.csv"]
    # One process measures all models, because each takes only seconds.
    yield Step(
        command="measure_captioners",
        message="Caption the test images with every model",
        reads=[files.pictures("test"), regions, *(folder / file for folder in folders for file in used)],
        makes=[folder / table for folder in folders for table in CAPTIONER_TABLES],
        sees=source | at.see(BASE, "decoding", "shown", "seeds") | {f"{BASE}/models": list(models)},
    )
