"""From text to trees: EDUs and trees of documents, a few documents at a time."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from docmt.corpora.contrastive import read_items
from docmt.corpora.documents import DocumentIndex
from docmt.corpora.generative import read_either
from docmt.discourse.dependencies import NO_HEAD, ROOT, DependencyTree, highest_edus
from docmt.discourse.documents import DiscourseDocument, iterate_discourse
from docmt.discourse.parsing.baselines import RELATION, Parser
from docmt.discourse.parsing.model_file import reads_states_of
from docmt.discourse.parsing.neural import NeuralParser, word_states
from docmt.discourse.segmentation.prediction import Segmenter
from docmt.discourse.segmentation.text import PlainText, TokenizedText, batches, sentences_of, with_edus
from docmt.errors import UserError
from docmt.files import read_lines


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


def annotate(
    texts: Iterable[PlainText], *, lang: str, segmenter: Segmenter, parser: Parser
) -> Iterator[DiscourseDocument]:
    """Segment and parse documents; memory use does not grow with their number.

    A parser that reads the states of this segmenter gets them from the segmentation, so that sentences are read once.
    """
    state_reader = parser if isinstance(parser, NeuralParser) and reads_states_of(parser, segmenter) else None
    for batch in batches(texts, lang=lang):
        # In a separate function, so that the word states of a batch are freed before the next batch is read.
        yield from _annotate_batch(batch, segmenter=segmenter, parser=parser, state_reader=state_reader)


def _annotate_batch(
    batch: list[TokenizedText], *, segmenter: Segmenter, parser: Parser, state_reader: NeuralParser | None
) -> list[DiscourseDocument]:
    readings = segmenter.read(sentences_of(batch))
    documents = with_edus(batch, [reading.starts for reading in readings])
    if state_reader is not None:
        states = word_states(readings, documents, reads_lower=state_reader.reads_lower)
        return state_reader.parse_batch(documents, states)
    return parser.parse_batch(documents)


def chain_sentences(document: DiscourseDocument) -> DiscourseDocument:
    """Keep the arcs inside sentences, and let each sentence depend on the one before.

    The highest EDU of a sentence depends on that of the sentence before it. Other EDUs whose heads are outside their
    sentence depend on its highest one.
    """
    sentence_of = [edu.sentence for edu in document.edus]
    arcs = document.dependencies
    highest = highest_edus(arcs.heads, sentence_of, len(document.sentences))
    heads, relations = list(arcs.heads), list(arcs.relations)
    for edu, (head, sentence) in enumerate(zip(arcs.heads, sentence_of, strict=True)):
        if edu == highest[sentence]:
            heads[edu] = highest[sentence - 1] if sentence else NO_HEAD
        elif sentence_of[head] != sentence:
            heads[edu] = highest[sentence]
        if heads[edu] != head:
            relations[edu] = RELATION if heads[edu] != NO_HEAD else ROOT
    return replace(document, tree=None, arcs=DependencyTree(tuple(heads), tuple(relations)))


def rename(files: Sequence[Path], index: DocumentIndex) -> Iterator[DiscourseDocument]:
    """Read the documents of some files in order and give them the ids of a text that holds the same documents.

    Raises UserError when an id does not end in the id of the document at its place.
    """
    found = itertools.chain.from_iterable(map(iterate_discourse, files))
    names = ", ".join(map(str, files))
    for name in index.ids:
        document = next(found, None)
        if document is None or not f"/{name}".endswith(f"/{document.id}"):
            there = f"{document.id!r}" if document else "none"
            raise UserError(f"{names}: expected the trees of {name!r} next, found {there}")
        yield replace(document, id=name)
    if next(found, None) is not None:
        raise UserError(f"{names}: more documents than the {len(index.ids)} of the text")
