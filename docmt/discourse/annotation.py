"""Text to trees: words, EDUs and trees of the documents of a file, a few documents at a time."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from docmt.corpora.contrastive import read_suite
from docmt.corpora.documents import DocumentIndex, read_index
from docmt.discourse.documents import DiscourseDocument, edus_of_starts, iterate_discourse
from docmt.discourse.parsing.baselines import Parser
from docmt.discourse.parsing.model_file import reads_states_of
from docmt.discourse.parsing.neural import NeuralParser, word_states
from docmt.discourse.segmentation.prediction import Segmenter
from docmt.discourse.segmentation.text import sentence_words
from docmt.errors import UserError
from docmt.files import iterate_lines

BATCH_WORDS = 20_000
"""Documents are segmented and parsed side by side up to so many words."""


@dataclass(frozen=True)
class Text:
    """A document of plain sentences."""

    id: str
    sentences: list[str]


def read_texts(text: Path, documents: Path) -> Iterator[Text]:
    """The documents of `PREFIX.{lang}` and its index, one at a time.

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
        yield Text(name, sentences)
    if next(lines, None) is not None:
        raise UserError(f"{text}: more lines than the {index.n_sentences} sentences that {documents} counts")


def suite_texts(suite: Path) -> Iterator[Text]:
    """The source documents of a contrastive test set; the id of an item is that of its document."""
    for item in read_suite(suite):
        yield Text(item.id, list(item.src))


def take_shard(texts: Iterable[Text], index: DocumentIndex, *, shard: int, n_shards: int) -> Iterator[Text]:
    """The documents of one of `n_shards` runs of documents with about as many sentences each.

    All shards in order are all documents; a shard can be empty.
    """
    done = 0
    for text, length in zip(texts, index.lengths, strict=True):
        # The shard in which the middle of the document lies.
        place = 1 + (2 * done + length) * n_shards // (2 * index.n_sentences)
        done += length
        if place == shard:
            yield text


def annotate(texts: Iterable[Text], *, lang: str, segmenter: Segmenter, parser: Parser) -> Iterator[DiscourseDocument]:
    """Segment and parse documents; memory does not grow with their number.

    A parser that reads the states of this very segmenter is given them, so that sentences are read once.
    """
    shares_states = isinstance(parser, NeuralParser) and reads_states_of(parser, segmenter)
    for batch in _batches(texts):
        words = [[sentence_words(sentence, lang) for sentence in text.sentences] for text in batch]
        readings = segmenter.read([sentence for document in words for sentence in document])
        starts = iter([reading.starts for reading in readings])
        documents = []
        for text, sentences in zip(batch, words, strict=True):
            own = [next(starts) for _ in sentences]
            edus = edus_of_starts(own, [len(sentence) for sentence in sentences])
            documents.append(DiscourseDocument(text.id, tuple(sentences), edus))
        if shares_states:
            yield from parser.parse_batch(documents, word_states(readings, documents, reads_lower=parser.reads_lower))
        else:
            yield from parser.parse_batch(documents)


def _batches(texts: Iterable[Text]) -> Iterator[list[Text]]:
    batch: list[Text] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += sum(sentence.count(" ") + 1 for sentence in text.sentences)
        if size >= BATCH_WORDS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def rename(files: Sequence[Path], index: DocumentIndex) -> Iterator[DiscourseDocument]:
    """The documents of some files in order, under the ids of a text that holds the same documents.

    Raises UserError when an id does not end in that of the document in its place.
    """
    found = itertools.chain.from_iterable(map(iterate_discourse, files))
    names = ", ".join(map(str, files))
    for name in index.ids:
        document = next(found, None)
        if document is None or not f"/{name}".endswith(f"/{document.id}"):
            there = f"{document.id!r}" if document else "none"
            raise UserError(f"{names}: the trees of {name!r} are needed next, but there is {there}")
        yield replace(document, id=name)
    if next(found, None) is not None:
        raise UserError(f"{names}: more documents than the {len(index.ids)} of the text")
