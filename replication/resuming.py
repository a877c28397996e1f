"""Which checkpoints of a Trainer of transformers a run may go on from."""

import json
import shutil
from pathlib import Path

from replication.storage import replacing


def keep_whole_checkpoints(folder: Path, settings: dict[str, object]) -> None:
    """Remove those in ``folder`` that were made with other settings, and those that a kill has left half-written."""
    record = folder / "settings.json"
    as_text = json.dumps(settings, sort_keys=True, default=str)
    if folder.exists() and not (record.exists() and record.read_text() == as_text):
        shutil.rmtree(folder)
    with replacing(record) as temporary:
        temporary.write_text(as_text)
    for checkpoint in folder.glob("checkpoint-*"):
        if not _is_whole(checkpoint):
            shutil.rmtree(checkpoint)


def _is_whole(checkpoint: Path) -> bool:
    """The Trainer writes ``trainer_state.json`` last, so it tells: it is missing or cut off if anything is."""
    try:
        json.loads((checkpoint / "trainer_state.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    return True
