"""One golden file per format: only text changes, everything else stays byte by byte."""

import subprocess
from pathlib import Path
from shutil import which

import defusedxml.ElementTree
import pytest
from formats_standin import PARTS, forget, members, packed, shout, translated, word_for_word

from docmt.formats.registry import FORMATS, find_format

GOLDEN = Path(__file__).parent / "golden"
SOURCES = [
    *("plain.txt", "list.lines", "readme.md", "film.srt", "talk.vtt", "app.po", "app.xlf", "app2.xliff", "memory.tmx"),
    *("page.html", "letter.docx.xml", "letter.odt.xml"),
]


def run(source, translate=shout, align=None, **options):
    """The translation of a golden file, and its bytes before; of office files, the part that holds text."""
    content = (GOLDEN / source).read_bytes()
    if source.endswith(".xml"):
        suffix = source.split(".")[1]
        data = packed(content, suffix)
        out, counts = translated(Path(source.removesuffix(".xml")), data, translate, align, **options)
        assert list(members(out)) == list(members(data))
        assert members(out)["media/picture.png"] == bytes(range(256))
        return members(out)[PARTS[suffix]], content, counts
    name = "lines" if source.endswith(".lines") else None
    out, counts = translated(Path(source), content, translate, align, name=name, **options)
    return out, content, counts


@pytest.mark.parametrize("source", SOURCES)
def test_only_text_changes(source):
    out, before, counts = run(source)
    assert out != before
    assert out.decode() == (GOLDEN / f"expected.{source}").read_bytes().decode()
    assert counts.lost == 0


@pytest.mark.parametrize("source", SOURCES)
def test_what_cannot_be_translated_stays_and_is_counted(source):
    out, before, counts = run(source, translate=lambda documents: [["" for _ in d] for d in documents])
    if source == "app.po":  # what could not be translated is marked as fuzzy
        assert out.count(b"fuzzy") > before.count(b"fuzzy")
        out, before = (text.replace(b"#, fuzzy\n", b"").replace(b" fuzzy,", b"") for text in (out, before))
    assert out == before
    assert counts.untouched.total() == counts.segments > 0


@pytest.mark.parametrize("source", [s for s in SOURCES if s.endswith((".xlf", ".xliff", ".tmx", ".xml", ".po"))])
@pytest.mark.parametrize("translate", [shout, forget])
def test_other_programs_read_what_is_written(source, translate, tmp_path):
    out, _, counts = run(source, translate, word_for_word)
    assert not counts.left
    if not source.endswith(".po"):
        assert defusedxml.ElementTree.fromstring(out) is not None
    elif which("msgfmt"):
        (tmp_path / source).write_bytes(out)
        checked = subprocess.run(["msgfmt", "-c", "-o", "/dev/null", tmp_path / source], capture_output=True)
        assert checked.returncode == 0, checked.stderr.decode()


def test_every_format_has_a_golden_file():
    names = [source.removesuffix(".xml") for source in SOURCES if source != "list.lines"]
    tested = {"lines", *(find_format(Path(name)).name for name in names)}
    assert tested == set(FORMATS)
    assert all(find_format(Path("x"), name).name == name for name in FORMATS)
