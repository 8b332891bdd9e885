"""From plain sentences to documents with EDUs, a few documents at a time."""

import ctypes
import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from docmt.corpora.documents import read_index
from docmt.discourse.documents import DiscourseDocument, edus_of_starts
from docmt.discourse.segmentation.prediction import Segmenter
from docmt.errors import UserError
from docmt.files import iterate_lines
from docmt.text.tokenizer import get_tokenizer, sentence_words

log = logging.getLogger(__name__)

BATCH_WORDS = 20_000
"""Documents are segmented together once they hold this many words, so that the network gets full batches."""

Words = tuple[str, ...]


@dataclass(frozen=True)
class PlainText:
    """A document as plain sentences."""

    id: str
    sentences: list[str]


@dataclass(frozen=True)
class TokenizedText:
    """A document as tokenized sentences; an empty sentence has no words."""

    id: str
    sentences: tuple[Words, ...]


def read_texts(text: Path, documents: Path) -> Iterator[PlainText]:
    """Read documents from `PREFIX.{lang}` and its index, one at a time.

    Raises UserError when there are fewer or more lines than the index counts.
    """
    index = read_index(documents)
    lines = iterate_lines(text)
    n_lines = 0
    for name, length in zip(index.ids, index.lengths, strict=True):
        sentences = list(itertools.islice(lines, length))
        n_lines += len(sentences)
        if len(sentences) < length:
            raise UserError(f"{text}: {n_lines} lines, but {documents} counts {index.n_sentences} sentences")
        yield PlainText(name, sentences)
    if next(lines, None) is not None:
        raise UserError(f"{text}: more lines than the {index.n_sentences} sentences that {documents} counts")


def batches(texts: Iterable[PlainText], *, lang: str) -> Iterator[list[TokenizedText]]:
    """Tokenize documents, in order, in batches.

    A batch ends with the document that brings it to `BATCH_WORDS` words. With `fill_batches`, which ends a batch before
    its budget is exceeded, other sentences would be padded together, which changes the last bits of their states.
    Raises UserError when the language is unknown.
    """
    get_tokenizer(lang)  # before anything is read
    batch: list[TokenizedText] = []
    size = 0
    for text in texts:
        batch.append(TokenizedText(text.id, tuple(sentence_words(line, lang) for line in text.sentences)))
        size += sum(1 + len(words) for words in batch[-1].sentences)  # empty sentences take memory too
        if size >= BATCH_WORDS:
            yield batch
            batch, size = [], 0
            _return_free_memory()
    if batch:
        yield batch


def _return_free_memory() -> None:
    """Return freed memory to the operating system where the C library can (glibc).

    Tensors of ever-changing sizes fragment the heap, which would otherwise grow with the number of batches.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def sentences_of(batch: Iterable[TokenizedText]) -> list[Words]:
    """List the sentences of all documents, in order."""
    return [words for text in batch for words in text.sentences]


def with_edus(batch: Iterable[TokenizedText], starts: Iterable[Sequence[int]]) -> list[DiscourseDocument]:
    """Build documents with EDUs and without trees; a sentence without words has one EDU without words.

    `starts` has, for each of `sentences_of(batch)`, the words other than the first at which an EDU begins.
    """
    remaining = iter(starts)
    documents = []
    for text in batch:
        own = list(itertools.islice(remaining, len(text.sentences)))
        documents.append(DiscourseDocument(text.id, text.sentences, edus_of_starts(own, map(len, text.sentences))))
    return documents


def segment_texts(texts: Iterable[PlainText], *, lang: str, segmenter: Segmenter) -> Iterator[DiscourseDocument]:
    """Segment documents, in order; memory use does not grow with their number.

    Raises UserError when the language is unknown.
    """
    n_sentences = n_empty = n_edus = 0
    for batch in batches(texts, lang=lang):
        for document in with_edus(batch, segmenter.segment(sentences_of(batch))):
            n_sentences += len(document.sentences)
            n_empty += sum(not words for words in document.sentences)
            n_edus += len(document.edus)
            yield document
    log.info("%d sentences (%d of them empty), %d EDUs", n_sentences, n_empty, n_edus)
