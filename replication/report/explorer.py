"""The attention explorer: an offline page that predicts a passage's graphs and compares them with the gold graphs."""

from pathlib import Path

import jinja2

#: Quoted from the page's data, whose words are those of any text.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def explorer(passage: str, profile: str, back: str) -> str:
    """Return the explorer as HTML.

    Parameters
    ----------
    passage : str
        Content of a run's ``masked_lm/passage.json`` (:func:`replication.masked_lm.passage.passage_data`).
    profile : str
        Name of the run.
    back : str
        Address of the page that the explorer leads back to.
    """
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.get_template("explorer.html").render(
        passage=passage.translate(_ESCAPES), profile=profile, back=back
    )
