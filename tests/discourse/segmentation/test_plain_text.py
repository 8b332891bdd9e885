"""From text to EDUs: documents in order, in small batches, and words without marks. Text and index must match."""

import pytest
from segmenter_fixtures import untrained

from docmt.corpora.documents import INDEX_HEADER
from docmt.discourse import annotation
from docmt.discourse.annotation import PlainText, read_texts, segment_texts, tokenize_batches
from docmt.discourse.discourse_documents import write_discourse
from docmt.errors import UserError
from docmt.files import write_lines
from docmt.text.tokenizer import sentence_words


def make_text(tmp_path, lengths, n_lines):
    write_lines(tmp_path / "t.en", [f"He said {i} that Mary left." for i in range(n_lines)])
    index = [f"d{number}\t{length}" for number, length in enumerate(lengths)]
    write_lines(tmp_path / "t.documents.tsv", [INDEX_HEADER, *index])
    return tmp_path / "t.en", tmp_path / "t.documents.tsv"


def segmented(files):
    return segment_texts(read_texts(*files), lang="en", segmenter=untrained())


def test_batches_are_lazy_and_invisible(tmp_path, monkeypatch):
    files = make_text(tmp_path, (2, 1, 3, 1), 7)
    together = list(segmented(files))
    monkeypatch.setattr(annotation, "BATCH_WORDS", 3 * 8)
    documents = segmented(files)
    read = []
    monkeypatch.setattr(
        annotation, "sentence_words", lambda line, lang: read.append(line) or sentence_words(line, lang)
    )
    first = next(documents)
    assert len(read) == 6, "a batch of three sentences, and the document that ends it"
    assert [first, *documents] == together
    assert [len(document.sentences) for document in together] == [2, 1, 3, 1]


def test_words_without_blanks_and_empty_sentences_fill_batches(monkeypatch):
    monkeypatch.setattr(annotation, "BATCH_WORDS", 10)
    chinese = [PlainText(f"d{i}", ["他说他今天不会来,因为下雨了。"]) for i in range(3)]
    assert [len(batch) for batch in tokenize_batches(chinese, lang="zh")] == [1, 1, 1]
    assert [len(batch) for batch in tokenize_batches([PlainText(f"d{i}", [""] * 5) for i in range(3)], lang="en")] == [
        2,
        1,
    ]


@pytest.mark.parametrize(
    ("n_lines", "message"), [(2, "2 lines, but .* has 3 sentences"), (4, "4 lines, but .* has 3 sentences")]
)
def test_lines_must_fit_the_index(tmp_path, n_lines, message):
    files = make_text(tmp_path, (2, 1), n_lines)
    with pytest.raises(UserError, match=message):
        write_discourse(tmp_path / "out.jsonl", segmented(files))
    assert not (tmp_path / "out.jsonl").exists()


def test_an_unknown_language_is_one_line():
    with pytest.raises(UserError, match="language 'xx'"):
        list(segment_texts([PlainText("d", ["x"])], lang="xx", segmenter=untrained()))
