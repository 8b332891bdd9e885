"""From raw sentences to documents with EDUs, a few documents at a time."""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

from docmt.corpora.documents import read_index
from docmt.discourse.documents import DiscourseDocument, edus_of_starts
from docmt.discourse.segmentation.prediction import Segmenter
from docmt.errors import UserError
from docmt.files import iterate_lines
from docmt.logs import progress
from docmt.text.spacing import unescape
from docmt.text.tokenizer import get_tokenizer, plain_tokens

log = logging.getLogger(__name__)

CHUNK_SENTENCES = 1000
"""Documents are segmented together until they hold so many sentences, so that batches are full."""

Words = tuple[str, ...]


def sentence_words(line: str, lang: str) -> Words:
    """The words of a raw sentence, without the marks and escapes of the tokeniser; none for an empty line."""
    return tuple(unescape(token) for token in plain_tokens(get_tokenizer(lang).tokenise(line)))


def segment_text(segmenter: Segmenter, *, text: Path, lang: str, index: Path) -> Iterator[DiscourseDocument]:
    """Segment the documents of a text file, in order.

    A sentence without words keeps its place, with one EDU without words. The text is read line by line; memory holds
    `CHUNK_SENTENCES` sentences, or one document where it is longer.

    Args:
        text: raw text, one sentence per line.
        lang: the language of its tokeniser.
        index: the document index (`.documents.tsv`) of the text.

    Raises UserError when lines and index do not fit each other.
    """
    get_tokenizer(lang)  # an unknown language is an error before anything is read
    n_sentences = n_empty = n_edus = 0
    for chunk in _chunks(_documents(text, lang, index)):
        found = iter(segmenter.segment([words for _, sentences in chunk for words in sentences]))
        for name, sentences in chunk:
            starts = [next(found) for _ in sentences]
            edus = edus_of_starts(starts, map(len, sentences))
            n_sentences += len(sentences)
            n_empty += sum(not words for words in sentences)
            n_edus += len(edus)
            yield DiscourseDocument(name, tuple(sentences), edus)
    log.info("%s: %d sentences (%d of them empty), %d EDUs", text, n_sentences, n_empty, n_edus)


def _documents(text: Path, lang: str, index: Path) -> Iterator[tuple[str, list[Words]]]:
    documents = read_index(index)
    lines = iter(progress(iterate_lines(text), label="segment", unit="sentences", total=documents.n_sentences))
    n_read = 0
    for name, length in zip(documents.ids, documents.lengths, strict=True):
        sentences = []
        for line in lines:
            sentences.append(sentence_words(line, lang))
            if len(sentences) == length:
                break
        n_read += len(sentences)
        if len(sentences) < length:
            raise UserError(f"{text}: {n_read} lines, but {index} counts {documents.n_sentences} sentences")
        yield name, sentences
    if next(lines, None) is not None:
        raise UserError(f"{text}: more lines than the {documents.n_sentences} sentences that {index} counts")


def _chunks(documents: Iterable[tuple[str, list[Words]]]) -> Iterator[list[tuple[str, list[Words]]]]:
    chunk: list[tuple[str, list[Words]]] = []
    size = 0
    for document in documents:
        chunk.append(document)
        size += len(document[1])
        if size >= CHUNK_SENTENCES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
