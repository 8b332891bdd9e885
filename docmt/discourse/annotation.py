"""From text to trees: EDUs and trees of documents, a few documents at a time."""

import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from docmt.corpora.documents import DocumentIndex
from docmt.discourse.dependencies import NO_HEAD, ROOT, DependencyTree, highest_edus
from docmt.discourse.documents import DiscourseDocument, iterate_discourse
from docmt.discourse.parsing.baselines import RELATION, Parser
from docmt.discourse.parsing.model_file import reads_states_of
from docmt.discourse.parsing.neural_parser import NeuralParser, word_states
from docmt.discourse.segmentation.plain_text import (
    PlainText,
    TokenizedText,
    sentences_of,
    tokenize_batches,
    with_edus,
)
from docmt.discourse.segmentation.segmenter import Segmenter
from docmt.errors import UserError

log = logging.getLogger(__name__)


def segment_texts(texts: Iterable[PlainText], *, lang: str, segmenter: Segmenter) -> Iterator[DiscourseDocument]:
    """Segment documents, in order; memory use does not grow with their number."""
    n_sentences = n_empty = n_edus = 0
    for batch in tokenize_batches(texts, lang=lang):
        for document in with_edus(batch, segmenter.segment(sentences_of(batch))):
            n_sentences += len(document.sentences)
            n_empty += sum(not words for words in document.sentences)
            n_edus += len(document.edus)
            yield document
    log.info("%d sentences (%d of them empty), %d EDUs", n_sentences, n_empty, n_edus)


def annotate(
    texts: Iterable[PlainText], *, lang: str, segmenter: Segmenter, parser: Parser
) -> Iterator[DiscourseDocument]:
    """Segment and parse documents; memory use does not grow with their number.

    A parser that reads the states of this segmenter gets them from the segmentation, so that sentences are read once.
    """
    state_reader = parser if isinstance(parser, NeuralParser) and reads_states_of(parser, segmenter) else None
    for batch in tokenize_batches(texts, lang=lang):
        # In a separate function, so that the word states of a batch are freed before the next batch is read.
        yield from _annotate_batch(batch, segmenter=segmenter, parser=parser, state_reader=state_reader)


def _annotate_batch(
    batch: list[TokenizedText], *, segmenter: Segmenter, parser: Parser, state_reader: NeuralParser | None
) -> list[DiscourseDocument]:
    readings = segmenter.read(sentences_of(batch))
    documents = with_edus(batch, [reading.starts for reading in readings])
    if state_reader is None:
        return parser.parse_batch(documents)
    states = word_states(readings, documents, reads_lower=state_reader.reads_lower)
    return state_reader.parse_batch(documents, states)


def chain_sentences(document: DiscourseDocument) -> DiscourseDocument:
    """Keep the arcs inside sentences, and let each sentence depend on the one before.

    The highest EDU of a sentence depends on the highest EDU of the sentence before it. Other EDUs whose heads are
    outside their sentence depend on its highest one.
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
    """Read the documents of some files in order and give them the ids of a text that holds the same documents."""
    found = itertools.chain.from_iterable(map(iterate_discourse, files))
    names = ", ".join(map(str, files))
    for name in index.ids:
        document = next(found, None)
        # A combined text puts the name of the corpus before the ids of its documents.
        if document is None or not f"/{name}".endswith(f"/{document.id}"):
            there = f"{document.id!r}" if document else "none"
            raise UserError(f"{names}: expected the trees of {name!r} next, found {there}")
        yield replace(document, id=name)
    if next(found, None) is not None:
        raise UserError(f"{names}: more documents than the {len(index.ids)} of the text")
