"""Karpathy's splits and features of regions, in files of their form."""

import json
import re

import numpy as np
import pytest

from replication.captioning.pictures import load_pictures, read_pictures, regions_of, write_features, write_pictures


def entry(cocoid: int, split: str, *captions: str) -> dict:
    """As in ``dataset_coco.json``."""
    sentences = [
        {"tokens": words.split(), "raw": f"{words.capitalize()}.", "imgid": 0, "sentid": 0} for words in captions
    ]
    return {"filepath": "val2014", "sentids": [0], "filename": f"COCO_val2014_{cocoid:012}.jpg", "imgid": 0, "split": split,
            "sentences": sentences, "cocoid": cocoid}  # fmt: skip


IMAGES = [
    entry(9, "train", "a man rides a horse", "a horse"),
    entry(7, "restval", "a red bus"),
    entry(5, "val", "a dog"),
    entry(3, "test", "two cats on a bed"),
]


@pytest.fixture
def coco(tmp_path):
    (tmp_path / "regions").mkdir()
    for image in IMAGES:
        np.savez_compressed(
            tmp_path / "regions" / f"{image['cocoid']}.npz", feat=np.full((36, 8), image["cocoid"], "f4")
        )

    def source(images: list[dict] = IMAGES) -> dict:
        (tmp_path / "dataset_coco.json").write_text(json.dumps({"images": images, "dataset": "coco"}))
        return {
            "source": "karpathy",
            "captions": str(tmp_path / "dataset_coco.json"),
            "regions": str(tmp_path / "regions"),
        }

    return source


def test_what_is_left_over_is_trained_on_and_validation_left_out(coco, tmp_path):
    splits, drawn = read_pictures(coco())
    assert {name: [one.image for one in split] for name, split in splits.items()} == {"train": [9, 7], "test": [3]}
    assert splits["train"][0].captions == [["a", "man", "rides", "a", "horse"], ["a", "horse"]]
    assert drawn == {}
    regions = regions_of(tmp_path / "regions")
    assert (regions(7) == 7).all()
    assert regions(7).dtype == np.float32


@pytest.mark.parametrize(
    ("images", "said"),
    [
        ([*IMAGES, entry(8, "test")], "image 8 has no caption"),
        ([*IMAGES, entry(8, "test", "")], "image 8 has no caption"),
        (IMAGES[:3], "no image of split 'test'; there are ['restval', 'train', 'val']"),
        ([*IMAGES, entry(8, "dev", "a cat")], "image 8: unknown split 'dev'"),
        ([*IMAGES, {"cocoid": 8, "split": "test"}], "image 8: no sentences"),
    ],
)
def test_a_faulty_file_of_splits_is_refused_with_the_image(coco, images, said):
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        read_pictures(coco(images))
    assert "dataset_coco.json" in str(caught.value)


def test_what_is_no_file_of_splits_is_refused(coco, tmp_path):
    source = coco()
    for content in ("[]", "{}", "not JSON"):
        (tmp_path / "dataset_coco.json").write_text(content)
        with pytest.raises(ValueError, match=r"dataset_coco\.json: not a file of Karpathy's splits"):
            read_pictures(source)


def test_an_image_without_features_is_named_before_anything_is_trained(coco, tmp_path):
    (tmp_path / "regions" / "3.npz").unlink()
    with pytest.raises(FileNotFoundError, match=r"3\.npz: no features of image 3"):
        read_pictures(coco())


def test_features_of_another_form_are_refused(tmp_path):
    np.savez(tmp_path / "1.npz", features=np.zeros((2, 3)))
    np.savez(tmp_path / "2.npz", feat=np.zeros(3))
    regions = regions_of(tmp_path)
    with pytest.raises(ValueError, match=r"1\.npz: must have an array 'feat', got features"):
        regions(1)
    with pytest.raises(ValueError, match=r"image 2 must have the shape \[regions, width\], got \(3,\)"):
        regions(2)


def test_scenes_come_back_as_they_were_written(tmp_path):
    splits, drawn = read_pictures({"source": "scenes", "images": {"train": 3, "test": 2}, "seed": 0})
    write_pictures(tmp_path / "train.jsonl", splits["train"])
    write_features(tmp_path / "regions.npz", drawn)
    assert load_pictures(tmp_path / "train.jsonl") == splits["train"]
    regions = regions_of(tmp_path / "regions.npz")
    assert all(np.allclose(regions(image) * 255, own) for image, own in drawn.items())
    assert {one.image for split in splits.values() for one in split} == set(drawn)


def test_features_are_the_same_bytes_each_time(tmp_path):
    _, drawn = read_pictures({"source": "scenes", "images": {"train": 3, "test": 2}, "seed": 0})
    for name in ("a.npz", "b.npz"):
        write_features(tmp_path / name, drawn)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize(
    ("source", "said"),
    [({"source": "scenes", "seed": 0}, "it needs images and seed"), ({"source": "karpathy"}, "it needs captions and regions"),
     ({"source": "flickr"}, "got 'flickr'")],
)  # fmt: skip
def test_a_source_that_is_unknown_or_lacks_a_key_is_refused(source, said):
    with pytest.raises(ValueError, match=said):
        read_pictures(source)
