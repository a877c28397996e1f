"""The stage that writes down what a run was asked for."""

from typing import Annotated

import typer

from replication.stages.options import Output, json_object


def configuration(
    settings: Annotated[dict, typer.Option(parser=json_object, help="the whole configuration")], output: Output
) -> None:
    """Write the configuration of a run as YAML, beside its results: premises of claims are read from it."""
    import yaml

    from replication.files.storage import replacing

    with replacing(output) as temporary:
        temporary.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
