"""Documents with one or two sides, and their files."""

import pytest

from docmt.corpora.documents import Document, read_documents, write_documents
from docmt.errors import UserError

PAIR = Document("a", (("One.", "", "Three."), ("Eins.", "Zwei.", "")))


@pytest.mark.parametrize(
    ("document", "languages"),
    [(PAIR, ["en", "de"]), (PAIR.reversed(), ["de", "en"]), (Document("a", (("One.", ""),)), ["en"])],
)
def test_what_is_written_is_read(tmp_path, document, languages):
    write_documents(tmp_path / "x", [document], languages=languages)
    assert read_documents(tmp_path / "x", languages=languages) == [document]


def test_one_side_of_a_pair_can_be_read(tmp_path):
    write_documents(tmp_path / "x", [PAIR], languages=["en", "de"])
    assert read_documents(tmp_path / "x", languages=["de"]) == [Document("a", (PAIR.tgt,))]


def test_sides_of_different_lengths_are_refused():
    with pytest.raises(UserError, match="document a: 1 source and 2 target sentences"):
        Document("a", (("One.",), ("Eins.", "Zwei.")))
