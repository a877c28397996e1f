"""Lines of alignment files, and text without an alignment."""

import pytest

from replication.corpora.alignment import from_pharaoh, to_pharaoh
from replication.corpora.sources import read_alignments


def test_alignment_files_have_the_usual_lines():
    assert to_pharaoh([(0, 0), (1, 2)]) == "0-0 1-2"
    assert from_pharaoh("0-0 1-2\n") == [(0, 0), (1, 2)]
    assert from_pharaoh(to_pharaoh([])) == []


@pytest.mark.parametrize("line", ["0", "0-", "a-1", "0-1-2"])
def test_another_line_is_refused(line):
    with pytest.raises(ValueError, match="must be an alignment"):
        from_pharaoh(line)


@pytest.mark.parametrize("source", [{"source": "folder", "path": "x"}, {"source": "hub", "name": "x"}])
def test_not_every_text_is_aligned(source):
    assert read_alignments(source, ["test"], ["fr", "en"], "spaces") == {}
