"""Thousands of damaged and hostile files, the same ones in every run: each is read or refused in one line, in time."""

import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from hostile_files import SAMPLES, files_of, read_sample, survey

from docmt.corpora.readers.registry import FORMATS as READERS
from docmt.formats.file_translation import fill_file
from docmt.formats.registry import FORMATS, open_file
from docmt.formats.translatable_file import Languages

GOLDEN = Path(__file__).parent / "formats/golden"
N_INPUTS = 400
SECONDS = 2
"""CPU time for a file of at most 64 KB; quadratic patterns take minutes."""
FILES = dict(text="plain.txt", lines="list.lines", srt="film.srt", vtt="talk.vtt", po="app.po", xliff="app.xlf")
FILES |= dict(tmx="memory.tmx", html="page.html", markdown="readme.md", docx="letter.docx.xml", odt="letter.odt.xml")
MEMBERS = {"docx": "word/document.xml", "odt": "content.xml"}


def test_every_reader_and_every_format_has_a_sample(tmp_path):
    assert set(SAMPLES) == set(READERS) - {"files"}
    assert set(FILES) == set(FORMATS)
    for reader in SAMPLES:
        if all(files_of(reader).values()):
            assert read_sample(reader, files_of(reader), tmp_path) > 0, reader


@pytest.mark.slow
@pytest.mark.parametrize("reader", SAMPLES)
def test_readers_survive_what_they_are_given(reader, tmp_path):
    def use(files):
        read_sample(reader, files, tmp_path)

    bad = survey(reader, files_of(reader), use, n_inputs=N_INPUTS, seconds=SECONDS)
    assert not bad, "\n".join(bad)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_formats_survive_what_they_are_given(name):
    content = (GOLDEN / FILES[name]).read_bytes()
    if member := MEMBERS.get(name):
        stream = BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr(member, content)
        content = stream.getvalue()

    def use(files):
        file = open_file(Path("a"), files["a"], languages=Languages("en", "de"), name=name)
        fill_file(file, lambda documents: documents)
        file.translated()

    bad = survey(name, {"a": content}, use, n_inputs=N_INPUTS, seconds=SECONDS)
    assert not bad, "\n".join(bad)
