import json

import pytest

from replication.archives.crate import METADATA, metadata
from replication.files.manifest import checksum, making, read_manifest
from replication.files.storage import write_json
from replication.files.verification import inputs


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of two stages, one of which reads what the other has made."""
    monkeypatch.chdir(tmp_path)
    results = (tmp_path / "results/tiny").relative_to(tmp_path)
    with making("extract"):
        write_json(results / "graphs.json", [1])
        write_json(results / "left out.json", [2])
    with making("sweep"):
        inputs(results / "graphs.json", results / "left out.json")
        write_json(results / "sweep.json", [3])
    (results / "plain text.txt").write_text("nothing has made it\n")
    return results


def entities(run):
    files = [run / "sweep.json", run / "graphs.json", run / "plain text.txt"]
    said = json.loads(metadata(run, files, read_manifest(run)))
    found = {one["@id"]: one for one in said["@graph"]}
    assert len(found) == len(said["@graph"])
    return found


def references(value):
    if isinstance(value, dict):
        if set(value) == {"@id"}:
            yield value["@id"]
        else:
            for one in value.values():
                yield from references(one)
    elif isinstance(value, list):
        for one in value:
            yield from references(one)


def test_every_file_is_described_with_its_checksum(run):
    found = entities(run)
    assert {name for name, one in found.items() if one["@type"] == "File"} == {
        "results/tiny/sweep.json",
        "results/tiny/graphs.json",
        "results/tiny/plain%20text.txt",
    }
    for one in found.values():
        if one["@type"] == "File":
            assert one["sha256"] == checksum(run.parents[1] / one["name"])
    assert {part["@id"] for part in found["./"]["hasPart"]} == {
        name for name, one in found.items() if one["@type"] == "File"
    }


def test_a_stage_is_an_action_on_what_it_read(run):
    (sweep,) = (one for one in entities(run).values() if one["@type"] == "CreateAction" and "sweep" in one["name"])
    assert sweep["object"] == {"@id": "results/tiny/graphs.json"}
    assert sweep["result"] == {"@id": "results/tiny/sweep.json"}
    assert f"left out.json (SHA-256 {checksum(run / 'left out.json')[:16]}...)" in sweep["description"]


def test_what_is_referred_to_is_there(run):
    found = entities(run)
    known = found.keys() | {"https://w3id.org/ro/crate/1.1"}  # the specification itself
    assert {name for one in found.values() for name in references(list(one.values()))} <= known
    assert found[METADATA]["about"] == {"@id": "./"}
    assert {"name", "description", "datePublished", "license", "hasPart"} <= found["./"].keys()
