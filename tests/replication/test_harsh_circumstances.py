"""Text that is not what it seems, models that are damaged, disks that are full: one line with the file, and no traceback."""

import json
import os
import resource
import signal
import subprocess
import sys

import pytest
import torch
from command_line import assert_one_line, run
from transformers import RobertaConfig, RobertaForMaskedLM

from replication.corpora.folder import read_folder
from replication.corpora.parallel import read_parallel
from replication.files.paths import ROOT
from replication.files.storage import write_tensors
from replication.masked_lm.model import load_model
from replication.training import save_trained

PUBLISHED = str(ROOT / "config/published")

SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 50}
WORDS = "héllo world\nmore words\n"


def words_of(folder):
    return [
        word for document in read_folder(folder, "train") for sentence in document.sentences for word in sentence.words
    ]


def test_a_byte_order_mark_is_no_part_of_a_word(tmp_path):
    (tmp_path / "train.txt").write_text(WORDS, encoding="utf-8-sig")
    assert words_of(tmp_path) == WORDS.split()
    for language in ("en", "de"):
        (tmp_path / f"train.{language}").write_text(WORDS, encoding="utf-8-sig")
    assert read_parallel(tmp_path, "train", ["en", "de"])["de"] == WORDS.splitlines()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (WORDS.encode("utf-16"), "not UTF-8"),
        (WORDS.encode("utf-16-le"), "NUL|not UTF-8"),
        (b"a word\nanother\0word\n", "line 2: contains a NUL byte"),
        (WORDS.encode("latin-1"), "not UTF-8"),
    ],
    ids=["utf-16", "utf-16-le", "nul", "latin-1"],
)
def test_other_encodings_are_named(tmp_path, content, said):
    (tmp_path / "train.txt").write_bytes(content)
    with pytest.raises(ValueError, match=rf"train\.txt.*({said})"):
        words_of(tmp_path)
    for language in ("en", "de"):
        (tmp_path / f"train.{language}").write_bytes(content)
    with pytest.raises(ValueError, match=rf"train\.en.*({said})"):
        read_parallel(tmp_path, "train", ["en", "de"])


@pytest.fixture
def model(tmp_path):
    RobertaForMaskedLM(RobertaConfig(**SIZES)).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("keep", [0, 5, 100, -10])
def test_a_truncated_model_is_named(model, keep):
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises((ValueError, OSError), match="model: "):
        load_model(model)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"num_hidden_layers": 2}, r"roberta\.encoder\.layer\.1"),
        ({"intermediate_size": 32}, r"intermediate\.dense"),
        ({"vocab_size": 60}, "embeddings"),
    ],
)
def test_a_model_of_another_configuration_is_refused(model, change, named):
    settings = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(settings | change))
    with pytest.raises(ValueError, match=rf"weights do not match the configuration: .*{named}"):
        load_model(model)


WRITE = {
    "table": "import pandas as pd; write_table(sys.argv[1] + '/t.csv', pd.DataFrame({'a': range(100000)}))",
    "parquet": "import numpy as np, pandas as pd; "
    "write_table(sys.argv[1] + '/t.parquet', pd.DataFrame({'a': np.random.default_rng(0).random(100000)}))",
    "checkpoint": "import torch; from pathlib import Path; from replication.files.storage import replacing\n"
    "            with replacing(Path(sys.argv[1], 't.pt')) as path: torch.save(torch.zeros(100000), path)",
    "tensors": "import torch; write_tensors(sys.argv[1] + '/t.safetensors', {'a': torch.zeros(100000)}, kind='test')",
}


TRAIN = """if True:
    import sys, torch
    from pathlib import Path
    from replication.training import room_for_checkpoints
    try:
        with room_for_checkpoints(Path(sys.argv[1], "checkpoints")):
            torch.save(torch.zeros(100000), sys.argv[1] + "/checkpoint.pt")
    except OSError as error:
        print(error)"""


def limited():
    """Limit the size of files, which stands for a full disk: the system says no in the same way, in the middle of writing."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))


def test_no_room_for_a_checkpoint_names_the_checkpoints(tmp_path):
    command = [sys.executable, "-c", TRAIN, str(tmp_path)]
    done = subprocess.run(command, preexec_fn=limited, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "no room for a checkpoint; free some and run again" in done.stdout
    assert f"{tmp_path}/checkpoints" in done.stdout


def test_files_follow_the_umask_and_reach_the_disk(tmp_path):
    code = """if True:
        import os, sys
        os.umask(0o027)
        synced, fsync = [], os.fsync
        os.fsync = lambda number: (synced.append(os.fstat(number).st_ino), fsync(number))
        from replication.files.storage import write_json
        write_json(sys.argv[1] + "/one.json", 1)
        status = os.stat(sys.argv[1] + "/one.json")
        print(oct(status.st_mode & 0o777), status.st_ino in synced)"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout == "0o640 True\n", done.stderr


def test_a_model_is_saved_to_the_same_bytes(tmp_path):
    """safetensors writes several entries of metadata in a random order."""
    model = RobertaForMaskedLM(RobertaConfig(**SIZES))
    written = set()
    for number in range(6):
        (tmp_path / str(number)).mkdir()
        save_trained(model, tmp_path / str(number))
        written.add((tmp_path / str(number) / "model.safetensors").read_bytes())
    assert len(written) == 1
    length = int.from_bytes(next(iter(written))[:8], "little")
    metadata = json.loads(next(iter(written))[8 : 8 + length])["__metadata__"]
    assert len(metadata) > 1
    assert list(metadata) == sorted(metadata)
    assert torch.equal(load_model(tmp_path / "0").lm_head.bias, model.lm_head.bias)


@pytest.mark.parametrize("kind", WRITE)
def test_no_room_for_a_file_is_said_with_its_name_and_nothing_is_left(tmp_path, kind):
    code = f"""if True:
        import sys
        from replication.files.storage import write_table, write_tensors
        try:
            {WRITE[kind]}
        except OSError as error:
            print(error)
        else:
            print("no complaint")"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], preexec_fn=limited, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path}/t." in done.stdout
    assert "no complaint" not in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match=str(tmp_path)):
        write_tensors(tmp_path / "t.safetensors", {"a": torch.zeros(1)}, kind="test")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["keep", "nowhere"], "nowhere: no such file or directory"),
        (["claims", "nowhere", "--output", "claims.csv"], "nowhere: must be the folder of a run, got none"),
        (["claims", "a file", "--output", "claims.csv"], "a file: must be the folder of a run, got a file"),
        (["report", "nowhere", "--output", "report.html"], "nowhere: must be the folder of a run, got none"),
        (["replay", "none.zip", "--output", "new"], "none.zip: no such file or directory"),
        (["printed", "--published", PUBLISHED, "--output", "/proc/c.csv"], "/proc/c.csv: no such file or directory"),
        (["sweep", "masked_lm", "--config", "nothing.yaml"], "nothing.yaml: no such file or directory"),
    ],
)
def test_a_missing_file_or_folder_is_named(tmp_path, arguments, said):
    (tmp_path / "a file").write_text("")
    command, *rest = arguments
    result = run(tmp_path, command, *rest, config=None)
    assert_one_line(result, said)
    assert "Errno" not in result.output
