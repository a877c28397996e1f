"""Pictures with captions, as Karpathy's splits of COCO say them, and the features of their regions, an npz file each."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from replication.captioning.scenes import patches, scenes
from replication.files.storage import replacing

SPLITS = ("train", "test")
#: Where Karpathy's splits go: what he left over is trained on too, as usual; nothing is chosen on the validation split.
_GOES_TO = {"train": "train", "restval": "train", "val": None, "test": "test"}
#: What the features of an image's regions are called in its npz file.
FEATURES = "feat"


@dataclass(frozen=True)
class Picture:
    """An image, by the number that its features are filed under, and its captions as words."""

    image: int
    captions: list[list[str]]


def read_pictures(source: Mapping[str, object]) -> tuple[dict[str, list[Picture]], dict[int, np.ndarray]]:
    """The splits train and test, and the features of those images that are drawn here, ``uint8 [R, F]``.

    Parameters
    ----------
    source : mapping
        ``{"source": "scenes", "images": {split: count}, "seed": 0}`` (:func:`replication.captioning.scenes.scenes`), or
        ``{"source": "karpathy", "captions": "dataset_coco.json", "regions": "cocobu_att"}``: Karpathy's file of splits, and a
        folder with ``<cocoid>.npz`` for every image, ``feat [R, F]`` in it.

    Raises
    ------
    FileNotFoundError
        If a file or an image's features are not there.
    ValueError
        If the source is unknown or lacks a key, the file of splits is none or lacks a split, or an image has no caption.
    """
    match source:
        case {"source": "scenes", "images": images, "seed": seed}:
            return _of_scenes(scenes(images, seed))
        case {"source": "karpathy", "captions": captions, "regions": regions}:
            found = _karpathy(Path(captions))
            for picture in (one for split in found.values() for one in split):
                if not (path := Path(regions, f"{picture.image}.npz")).is_file():
                    raise FileNotFoundError(f"{path}: no features of image {picture.image}")
            return found, {}
        case {"source": "scenes" | "karpathy" as kind}:
            needs = {"scenes": "images and seed", "karpathy": "captions and regions"}
            raise ValueError(f"source {kind!r} lacks a key: it needs {needs[kind]}")
        case _:
            raise ValueError(f"source {source.get('source')!r} is unknown: it is scenes or karpathy")


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
        if missing or entry["split"] not in _GOES_TO:
            wrong = f"no {', '.join(sorted(missing))}" if missing else f"split {entry['split']!r} is unknown"
            raise ValueError(f"{path}: image {entry.get('cocoid', f'number {number}')}: {wrong}")
        captions = [sentence["tokens"] for sentence in entry["sentences"] if sentence["tokens"]]
        if not captions:
            raise ValueError(f"{path}: image {entry['cocoid']} has no caption")
        if split := _GOES_TO[entry["split"]]:
            splits[split].append(Picture(entry["cocoid"], captions))
    for name in SPLITS:
        if not splits[name]:
            raise ValueError(f"{path}: no image of split {name!r}; there are {sorted({e['split'] for e in images})}")
    return splits


def write_pictures(path: Path, pictures: Iterable[Picture]) -> None:
    """As JSON lines, one picture each; :func:`load_pictures` reads them."""
    with replacing(path) as temporary:
        temporary.write_text("".join(json.dumps(asdict(picture)) + "\n" for picture in pictures), encoding="utf-8")


def load_pictures(path: Path) -> list[Picture]:
    return [Picture(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def write_features(path: Path, features: Mapping[int, np.ndarray]) -> None:
    """Of all images in one npz file, an array under the number of each."""
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **{str(image): regions for image, regions in features.items()})


def regions_of(path: Path) -> Callable[[int], np.ndarray]:
    """What reads an image's regions ``float32 [R, F]``: from a folder of npz files, or from one of all images.

    Numbers of eight bits are shares of 255. It raises ``ValueError`` for what is not two-dimensional, with its name.
    """
    together = None if path.is_dir() else np.load(path)

    def regions(image: int) -> np.ndarray:
        if together is None:
            with np.load(path / f"{image}.npz") as file:
                if FEATURES not in file:
                    raise ValueError(f"{path / f'{image}.npz'}: no {FEATURES!r} in it; there is {', '.join(file)}")
                found = file[FEATURES]
        else:
            found = together[str(image)]
        if found.ndim != 2:
            raise ValueError(
                f"{path}: features of image {image} have shape {found.shape}; [regions, width] is expected"
            )
        return found.astype(np.float32) / (255 if found.dtype == np.uint8 else 1)

    return regions
