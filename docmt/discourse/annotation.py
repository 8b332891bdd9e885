"""Text to trees: EDUs and trees of documents, a few at a time."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from docmt.corpora.contrastive import read_suite
from docmt.corpora.documents import DocumentIndex
from docmt.discourse.documents import DiscourseDocument, iterate_discourse
from docmt.discourse.parsing.baselines import Parser
from docmt.discourse.parsing.model_file import reads_states_of
from docmt.discourse.parsing.neural import NeuralParser, word_states
from docmt.discourse.segmentation.prediction import Segmenter
from docmt.discourse.segmentation.text import PlainText, TokenisedText, batches, sentences_of, with_edus
from docmt.errors import UserError


def suite_texts(suite: Path) -> Iterator[PlainText]:
    """The source documents of a contrastive test set; the id of an item is that of its document."""
    for item in read_suite(suite):
        yield PlainText(item.id, list(item.src))


def take_shard(texts: Iterable[PlainText], index: DocumentIndex, *, shard: int, n_shards: int) -> Iterator[PlainText]:
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


def annotate(
    texts: Iterable[PlainText], *, lang: str, segmenter: Segmenter, parser: Parser
) -> Iterator[DiscourseDocument]:
    """Segment and parse documents; memory does not grow with their number.

    A parser that reads the states of this very segmenter is given them, so that sentences are read once.
    """
    shares_states = isinstance(parser, NeuralParser) and reads_states_of(parser, segmenter)
    for batch in batches(texts, lang=lang):
        # A function of its own, so that the word states of a batch are gone before the next one is read.
        yield from _annotate_batch(batch, segmenter=segmenter, parser=parser, shares_states=shares_states)


def _annotate_batch(
    batch: list[TokenisedText], *, segmenter: Segmenter, parser: Parser, shares_states: bool
) -> list[DiscourseDocument]:
    readings = segmenter.read(sentences_of(batch))
    documents = with_edus(batch, [reading.starts for reading in readings])
    if shares_states:
        return parser.parse_batch(documents, word_states(readings, documents, reads_lower=parser.reads_lower))
    return parser.parse_batch(documents)


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
