"""A profile's own predictors: the graphs that they may fit themselves to, and copies for archives and stored runs."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from replication.predictors.own_predictors import is_own, own_file, own_names, stored_name
from replication.steps.step import Declaring, Step


def predictor_steps(at: Declaring) -> Iterator[Step]:
    """Yield a step per file of own predictors."""
    for file, name in {stored_name(name): name for name in own_names(at.run.given())}.items():
        yield Step(
            command="store_predictor",
            message=f"Store the code of {name}",
            options={"predictor": name},
            makes=[at.results / "predictors" / file],
            text=lambda name=name: [own_file(name)],
        )


def fitted_to(graphs: Iterable[Path], predictors: Iterable[str]) -> list[Path]:
    """Return the graphs if a predictor is an own one: only its code, which no plan runs, says whether it has `fit`."""
    return [*graphs] if any(map(is_own, predictors)) else []
