"""Plain documents: read from files, tokenized a few at a time, given EDUs."""

import ctypes
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from docmt.corpora.documents import DocumentIndex, read_index
from docmt.corpora.suite_items import read_either, read_items
from docmt.discourse.documents import DiscourseDocument, edus_from_starts
from docmt.errors import UserError
from docmt.files import iterate_lines, read_lines
from docmt.text.tokenizer import get_tokenizer, sentence_words

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
    """Read documents from `PREFIX.{lang}` and its index, one at a time."""
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


def suite_texts(suite: Path) -> Iterator[PlainText]:
    """Read the source documents of a contrastive or generative test set; each has the id of its item."""
    for item in read_items(suite, read_either):
        yield PlainText(item.id, list(item.src))


def blank_line_texts(path: Path) -> Iterator[PlainText]:
    """Read a text with a blank line between documents, as `docmt translate` does; their ids are their numbers."""
    groups = itertools.groupby(read_lines(path), key=lambda line: not line.strip())
    texts = (list(lines) for is_blank, lines in groups if not is_blank)
    for number, lines in enumerate(texts, start=1):
        yield PlainText(str(number), [line.removesuffix("\r") for line in lines])


def take_shard(texts: Iterable[PlainText], index: DocumentIndex, *, shard: int, n_shards: int) -> Iterator[PlainText]:
    """Take one of `n_shards` consecutive parts of the documents, with about the same number of sentences each.

    All shards together, in order, are all documents; a shard can be empty.
    """
    done = 0
    for text, length in zip(texts, index.lengths, strict=True):
        # The shard that holds the middle of the document.
        place = 1 + (2 * done + length) * n_shards // (2 * index.n_sentences)
        done += length
        if place == shard:
            yield text


def tokenize_batches(texts: Iterable[PlainText], *, lang: str) -> Iterator[list[TokenizedText]]:
    """Tokenize documents, in order, in batches; the document that brings a batch to `BATCH_WORDS` words is its last."""
    # Not `fill_batches`, which ends a batch before its budget is exceeded: other sentences would be padded together,
    # which changes the last bits of their states and so the trees of finished studies.
    get_tokenizer(lang)  # an unknown language is refused before anything is read
    batch: list[TokenizedText] = []
    size = 0
    for text in texts:
        batch.append(TokenizedText(text.id, tuple(sentence_words(line, lang) for line in text.sentences)))
        size += sum(1 + len(words) for words in batch[-1].sentences)  # empty sentences take memory too
        if size >= BATCH_WORDS:
            yield batch
            batch, size = [], 0
            # Tensors of ever-changing sizes fragment the heap, which would grow with the number of batches: have glibc
            # return freed memory to the operating system. Other C libraries lack the function.
            if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
                trim(0)
    if batch:
        yield batch


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
        documents.append(DiscourseDocument(text.id, text.sentences, edus_from_starts(own, map(len, text.sentences))))
    return documents
