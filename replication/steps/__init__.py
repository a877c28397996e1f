"""Every step of a configuration, declared once: rules are made from it, and its stage sees the settings that it declares."""

from collections.abc import Collection, Iterator
from pathlib import Path

from replication.config import Config, load
from replication.run.places import find
from replication.steps.blocks import block_steps
from replication.steps.captioning import captioning_steps
from replication.steps.char_lm import symbol_steps
from replication.steps.forms import form_steps
from replication.steps.graphs import graph_steps
from replication.steps.masked_lm import masked_lm_steps, token_steps
from replication.steps.predictors import predictor_steps
from replication.steps.retrofit import retrofit_steps
from replication.steps.step import Declaring, Step, as_words
from replication.steps.timing import factorised_steps, normalizer_steps, scaling_steps
from replication.steps.translation import parallel_steps, translation_steps

__all__ = ["Step", "receive", "steps"]

#: Declarations that concern every configuration.
SHARED = (factorised_steps, token_steps, parallel_steps, symbol_steps, graph_steps, form_steps, predictor_steps)
#: Declarations by the section that asks for them.
OF_SECTION = {
    "masked_lm": (masked_lm_steps, block_steps),
    "translation": (translation_steps,),
    "captioning": (captioning_steps,),
    "normalizer_speed": (normalizer_steps,),
    "scaling": (scaling_steps,),
    "retrofit": (retrofit_steps,),
}


def steps(run: Config, imported: Collection[str] = ()) -> Iterator[Step]:
    """Yield every step of a configuration.

    Parameters
    ----------
    run : Config
        The configuration.
    imported : collection of str
        Names of models that are imported from checkpoints, and so not trained.
    """
    at = Declaring(run, frozenset(imported))
    for declare in SHARED:
        yield from declare(at)
    for section, declarations in OF_SECTION.items():
        if getattr(run, section) is not None:
            for declare in declarations:
                yield from declare(at)


def receive(config: Path, command: str, **arguments: object) -> Config:
    """Return the configuration in a file as a stage sees it: with the settings that its step declares and no others.

    Parameters
    ----------
    config : Path
        The file.
    command : str
        Name of the stage's function.
    **arguments
        The stage's place and options by name; None stands for all of them.

    Raises
    ------
    ValueError
        If the configuration has no step of these arguments; the error names the first that is unknown.
    """
    run = load(config)
    own = [step for step in steps(run) if step.command == command]
    for name, given in arguments.items():
        known = {word: word for step in own for word in step.arguments[name]}
        wanted = {find(word, known, name) for word in as_words(given)} if given is not None else {*known}
        own = [step for step in own if wanted & {*step.arguments[name]}]
    # Without any such step, the section is missing, and the stage says so.
    return run.limited({"profile", *(path for step in own for path in step.sees)}) if own else run
