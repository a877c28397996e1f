"""Copies of a profile's own predictors, which its archive and a stored run contain."""

from collections.abc import Iterator

from replication.own_predictors import own_file, own_names, stored_name
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
