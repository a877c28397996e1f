"""Comparison of a run's folder with its manifest (:mod:`replication.files.manifest`)."""

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from replication.files.errors import FormatError
from replication.files.manifest import (
    add_input,
    changed_origins,
    changing,
    checksum,
    configuration_of,
    planned_as,
    read_manifest,
)
from replication.files.runs import CONFIGURATION, MANIFEST, PLACES, is_drawn, is_left_out, place_of, root_of


def verify(
    root: Path, *, whole: bool = False, drawn: bool = False, beside: Collection[str] = (), growing: bool = False
) -> dict:
    """Compare a run's folder with its manifest, and return the manifest.

    Parameters
    ----------
    root : Path
        Folder of the run.
    whole : bool
        Require every planned file. Otherwise files may be missing that the workflow has yet to make.
    drawn : bool
        Compare figures and executed notebooks too. Users draw them again and add their own, which are ignored.
    beside : collection of str
        Files that the caller makes, whatever they are now.
    growing : bool
        Accept planned files that are newer than the plan and not listed yet, such as those of a running job.

    Raises
    ------
    FormatError
        If a file is missing, not listed, of another run or configuration, or has changed; the error names it.
    """
    if not Path(root).is_dir():
        raise FormatError(f"{root}: must be the folder of a run, got {'a file' if Path(root).exists() else 'none'}")
    manifest = read_manifest(root)
    counts = {place for place in (*manifest["made"], *manifest["plan"]) if drawn or not is_drawn(place)} - {*beside}
    listed = {place: entry for place, entry in manifest["made"].items() if place in counts}
    if not listed:
        raise FormatError(f"{root / MANIFEST}: no file of the run is listed; {_again(root)}")
    for place, entry in listed.items():
        if problem := _problem(root, place, entry, manifest):
            raise FormatError(f"{root / place}: {problem}; {_again(root, entry)}")
    for path in files_of(root):
        place = place_of(path)
        if place in listed or place in beside or is_drawn(place):
            continue
        if not planned_as(manifest["plan"], place):
            raise FormatError(f"{path}: was not made by this run; {prune_command(root)}")
        if not (growing and _is_newer(path, root / CONFIGURATION)):
            raise FormatError(f"{path}: was made by a stage that did not end, or before this plan; {_again(root)}")
    if whole and (missing := [place for place in manifest["plan"] if place in counts and not _is_made(place, listed)]):
        raise FormatError(f"{root / missing[0]}: has not been made yet; {_again(root)}")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(_compare, [root / place for place in listed], listed.values()))
    return manifest


def inputs(*paths: Path) -> None:
    """Verify a stage's input files and folders before any work starts. Files outside of runs only have to exist.

    Raises
    ------
    FileNotFoundError
        If one of them does not exist.
    FormatError
        If one of them is not what its stage wrote.
    """
    manifests = {root: read_manifest(root) for root in {root_of(path) for path in paths} - {None}}
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file; run the stage that writes it first")
        if root := root_of(path):
            _check_input(path, root, manifests[root])


def _check_input(path: Path, root: Path, manifest: dict) -> None:
    listed = manifest["made"]
    # A folder must have all of its listed files, and no others.
    for file in [path] if path.is_file() else {*files_of(path), *_listed_below(path, listed)}:
        entry = listed.get(place_of(file))
        if entry is None:
            raise FormatError(f"{file}: is not listed in {MANIFEST}; {_again(root)}")
        if problem := _problem(root, place_of(file), entry, manifest):
            raise FormatError(f"{file}: {problem}; {_again(root, entry)}")
        _compare(file, entry)
        add_input(file)


def listed_files(folder: Path, pattern: str) -> list[Path]:
    """Return the files or folders below a folder that match a pattern, in the order of their paths.

    Of a run with a manifest, files that it does not list are left out.
    """
    root = root_of(folder / "file")
    found = sorted(folder.glob(pattern))
    if root is None or not (root / MANIFEST).exists():
        return found
    made = read_manifest(root)["made"]
    return [path for path in found if _is_made(place_of(path), made)]


def unplanned(root: Path) -> list[Path]:
    """Return the files of a run that its current configuration does not have, without links and what they lead to.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    FormatError
        If no plan of a whole configuration says which files the run has, as after stages by hand.
    """
    if not root.is_dir():
        raise FileNotFoundError(f"{root}: no such folder")
    manifest = read_manifest(root)
    if not manifest.get("whole"):
        raise FormatError(
            f"{root / MANIFEST}: must have the plan of a whole run, got none, so nothing says which files are left over;"
            f" run: {_snakemake(root)}"
        )
    kept = {**manifest["plan"], CONFIGURATION: {}}
    places = {path: place_of(path) for path in files_of(root, links=False)}
    return [path for path, place in places.items() if not is_drawn(place) and planned_as(kept, place) is None]


def prune(root: Path, files: Iterable[Path]) -> None:
    """Delete files of :func:`unplanned`."""
    with changing(root) as manifest:
        for path in files:
            path.unlink()
            manifest["made"].pop(place_of(path), None)


def files_of(folder: Path, *, links: bool = True) -> Iterator[Path]:
    """Yield the files of a run's folder that stages make; without ``links`` only those that lie in the folder itself."""
    for path in sorted(Path(folder).iterdir()):
        if not is_left_out(place_of(path)) and (links or not path.is_symlink()):
            yield from files_of(path, links=links) if path.is_dir() else [path]


def _problem(root: Path, place: str, entry: dict, manifest: dict) -> str | None:
    """Return what is wrong with a listed file, apart from its content."""
    plan = manifest["plan"]
    planned = planned_as(plan, place)
    if not (root / place).exists():
        return "is missing"
    if plan and planned is None and place != CONFIGURATION:
        return f"does not belong to this configuration; {prune_command(root)}"
    if planned and planned["options"] != entry["options"]:
        return "was made with options of another configuration"
    if not plan and configuration_of(manifest) not in (None, entry["configuration"]):
        return f"was made with another configuration than {CONFIGURATION}"
    changed = changed_origins(entry, manifest["made"])
    return f"was made from an earlier version of {changed[0]}" if changed else None


def _compare(path: Path, entry: dict) -> None:
    if checksum(path) != entry["sha256"]:
        stage = entry["stage"].split()[0].replace("-", "_")
        raise FormatError(f"{path}: has changed since stage {stage} made it; {_again(root_of(path), entry)}")


def _is_made(place: str, listed: Iterable[str]) -> bool:
    """Return whether a file, or a file of a folder, is listed."""
    return place in listed or any(name.startswith(f"{place}/") for name in listed)


def _is_newer(path: Path, than: Path) -> bool:
    return not than.exists() or path.stat().st_mtime_ns > than.stat().st_mtime_ns


def _listed_below(folder: Path, listed: Iterable[str]) -> list[Path]:
    root = root_of(folder / "file")
    return [root / place for place in listed if (root / place).is_relative_to(folder.absolute())]


def _again(root: Path, entry: dict | None = None) -> str:
    """Return what to do about a file, as the end of an error."""
    if root.parent.name != PLACES[0]:
        return f"to restore it: git stash push {root}; to list a new run as it is: replicate keep {root}"
    stage = "" if entry is None else f", or its stage alone: replicate {entry['stage']}"
    return f"move it away and run: {_snakemake(root)}{stage}"


def _snakemake(root: Path) -> str:
    return f"snakemake --cores 2 --configfile {root / CONFIGURATION}"


def prune_command(root: Path) -> str:
    """Return what to run if files of a run belong to none of its configuration's stages."""
    return f"to list such files, and delete them if you confirm it: replicate prune {root}"
