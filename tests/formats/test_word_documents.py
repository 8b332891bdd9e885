"""DOCX files as python-docx writes them, and as it reads them after translation."""

import io
from pathlib import Path

import docx
import pytest
from docx.shared import Inches
from formats_standin import forget, members, translated, word_for_word

PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c4944415408d763f8ffff3f0005fe02fea7356e830000000049454e44ae426082"
)


@pytest.fixture
def letter():
    """A document with styles, a list, a table, a picture, a header and a footer."""
    document = docx.Document()
    document.core_properties.language = "en-US"
    document.add_heading("A short letter", level=1)
    paragraph = document.add_paragraph("The ")
    paragraph.add_run("notary").bold = True
    paragraph.add_run(" opened the ")
    paragraph.add_run("old & sealed").italic = True
    paragraph.add_run(" letter.")
    document.add_paragraph("Name:\tAda", style="List Bullet")
    document.add_paragraph().add_run().add_picture(io.BytesIO(PICTURE), width=Inches(1))
    table = document.add_table(rows=2, cols=2)
    for row, texts in zip(table.rows, (("Word", "Count"), ("letter", "2")), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    document.sections[0].header.paragraphs[0].text = "For the archive"
    document.sections[0].footer.paragraphs[0].text = "Page one"
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def paragraphs(data):
    """Style of each paragraph, and text, weight and slant of its runs, in the order of the document."""
    document = docx.Document(io.BytesIO(data))
    section = document.sections[0]
    cells = [each for table in document.tables for row in table.rows for cell in row.cells for each in cell.paragraphs]
    found = [*document.paragraphs, *cells, *section.header.paragraphs, *section.footer.paragraphs]
    return [(each.style.name, [(run.text, run.bold, run.italic) for run in each.runs]) for each in found]


def test_every_run_has_its_text_and_its_look(letter):
    before = paragraphs(letter)
    out, counts = translated(Path("letter.docx"), letter)
    assert sum(len(runs) for _, runs in before) == 14
    assert counts.lost == counts.untouched.total() == 0
    assert paragraphs(out) == [(style, [(t.upper(), *look) for t, *look in runs]) for style, runs in before]
    assert docx.Document(io.BytesIO(out)).inline_shapes[0].width == Inches(1)


def test_all_but_text_and_language_stays(letter):
    out, _ = translated(Path("letter.docx"), letter)
    before, after = members(letter), members(out)
    assert list(before) == list(after)
    texts = {"word/document.xml", "word/header1.xml", "word/footer1.xml"}
    assert all(before[name] != after[name] for name in texts)
    renamed = {name: before[name].replace(b'w:val="en-US"', b'w:val="de"') for name in before}
    assert renamed["word/styles.xml"] != before["word/styles.xml"]
    assert all(after[name] == renamed[name] for name in before.keys() - texts)


def test_a_document_that_lost_its_marks_opens_with_all_words(letter):
    out, counts = translated(Path("letter.docx"), letter, forget, word_for_word)
    assert counts.left == []
    words = ["".join(text for text, *_ in runs).split() for _, runs in paragraphs(letter)]
    assert ["".join(text for text, *_ in runs).split() for _, runs in paragraphs(out)] == [
        [word.upper() for word in line] for line in words
    ]
    runs = paragraphs(out)[1][1]
    assert [text.strip() for text, bold, _ in runs if bold] == ["NOTARY"]
