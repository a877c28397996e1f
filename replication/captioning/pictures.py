"""Pictures with captions, drawn or from Karpathy's splits of COCO, and the features of their regions in npz files."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from replication.captioning.scenes import patches, scenes
from replication.files.names import file_name
from replication.files.storage import replacing

SPLITS = ("train", "test")
#: Our split for each of Karpathy's. As usual, the rest of COCO's validation images is trained on. The validation split is not
#: used, because nothing is selected on it.
_SPLIT_OF = {"train": "train", "restval": "train", "val": None, "test": "test"}
#: Name of the regions' features in an image's npz file.
FEATURES = "feat"


@dataclass(frozen=True)
class Picture:
    """The number of an image, under which its features are stored, and its captions as words."""

    image: int
    captions: list[list[str]]


def read_pictures(source: Mapping[str, object]) -> tuple[dict[str, list[Picture]], dict[int, np.ndarray]]:
    """Return the splits train and test, and the features of images that are drawn here.

    Parameters
    ----------
    source : mapping
        ``{"source": "scenes", "images": {split: count}, "seed": 0}`` (:func:`replication.captioning.scenes.scenes`), or
        ``{"source": "karpathy", "captions": "dataset_coco.json", "regions": "cocobu_att"}``: Karpathy's file of splits, and a
        folder with the file ``<cocoid>.npz`` of every image, which contains an array ``feat [R, F]``.

    Returns
    -------
    splits : dict of lists of Picture
    features : dict of arrays ``uint8 [R, F]``
        By image; empty for Karpathy's splits.

    Raises
    ------
    FileNotFoundError
        If a file or an image's features are missing.
    ValueError
        If the source is unknown or lacks a key, the file of splits is damaged or lacks a split, or an image has no caption.
    """
    match source:
        case {"source": "scenes", "images": images, "seed": seed}:
            return _of_scenes(scenes(images, seed))
        case {"source": "karpathy", "captions": captions, "regions": regions}:
            splits = _karpathy(Path(captions))
            for picture in chain.from_iterable(splits.values()):
                if not (path := Path(regions, file_name(Path(captions), f"{picture.image}.npz"))).is_file():
                    raise FileNotFoundError(f"{path}: no features of image {picture.image}")
            return splits, {}
        case {"source": "scenes" | "karpathy" as kind}:
            needs = {"scenes": "images and seed", "karpathy": "captions and regions"}
            raise ValueError(f"`source` {kind!r} lacks a key: it needs {needs[kind]}")
        case _:
            raise ValueError(f"`source` must be scenes or karpathy, got {source.get('source')!r}")


def _of_scenes(
    drawn: Mapping[str, list[tuple[np.ndarray, list[str]]]],
) -> tuple[dict[str, list[Picture]], dict[int, np.ndarray]]:
    splits, features = {}, {}
    for name, pictures in drawn.items():
        splits[name] = []
        for pixels, captions in pictures:
            splits[name].append(Picture(len(features), [caption.split() for caption in captions]))
            features[len(features)] = patches(pixels)
    return splits, features


def _karpathy(path: Path) -> dict[str, list[Picture]]:
    try:
        images = json.loads(path.read_text(encoding="utf-8"))["images"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not a file of Karpathy's splits ({error!r})") from error
    splits: dict[str, list[Picture]] = {name: [] for name in SPLITS}
    for number, entry in enumerate(images):
        missing = {"split", "cocoid", "sentences"} - entry.keys()
        if missing or entry["split"] not in _SPLIT_OF:
            problem = f"no {', '.join(sorted(missing))}" if missing else f"unknown split {entry['split']!r}"
            raise ValueError(f"{path}: image {entry.get('cocoid', f'number {number}')}: {problem}")
        captions = [sentence["tokens"] for sentence in entry["sentences"] if sentence["tokens"]]
        if not captions:
            raise ValueError(f"{path}: image {entry['cocoid']} has no caption")
        if split := _SPLIT_OF[entry["split"]]:
            splits[split].append(Picture(entry["cocoid"], captions))
    for name in SPLITS:
        if not splits[name]:
            raise ValueError(f"{path}: no image of split {name!r}; there are {sorted({e['split'] for e in images})}")
    return splits


def write_pictures(path: Path, pictures: Iterable[Picture]) -> None:
    """Write pictures as JSON lines, which :func:`load_pictures` reads."""
    with replacing(path) as temporary:
        temporary.write_text("".join(json.dumps(asdict(picture)) + "\n" for picture in pictures), encoding="utf-8")


def load_pictures(path: Path) -> list[Picture]:
    """Read a file of :func:`write_pictures`."""
    return [Picture(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def write_features(path: Path, features: Mapping[int, np.ndarray]) -> None:
    """Write the features of all images to one npz file, each array under its image's number."""
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **{str(image): regions for image, regions in features.items()})


def regions_of(path: Path) -> Callable[[int], np.ndarray]:
    """Return a function from an image's number to the features of its regions, ``float32 [R, F]``.

    Parameters
    ----------
    path : Path
        A folder with an npz file per image, or one npz file of all images.

    Raises
    ------
    ValueError
        By the returned function, if an image's features are missing in its file or are not two-dimensional.

    Notes
    -----
    Features of type uint8 are divided by 255.
    """
    all_features = None if path.is_dir() else np.load(path)

    def regions(image: int) -> np.ndarray:
        if all_features is None:
            with np.load(path / file_name(path, f"{image}.npz")) as file:
                if FEATURES not in file:
                    raise ValueError(f"{path / f'{image}.npz'}: must have an array {FEATURES!r}, got {', '.join(file)}")
                features = file[FEATURES]
        else:
            features = all_features[str(image)]
        if features.ndim != 2:
            raise ValueError(
                f"{path}: features of image {image} must have the shape [regions, width], got {features.shape}"
            )
        return features.astype(np.float32) / (255 if features.dtype == np.uint8 else 1)

    return regions
