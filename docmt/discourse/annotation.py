"""From text to trees: plain documents are read, tokenized, segmented and parsed, a few at a time."""

import ctypes
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import torch

from docmt.corpora.documents import DocumentIndex, read_index
from docmt.discourse.bundle import DiscourseBundle, SentenceTrees
from docmt.discourse.dependencies import NO_HEAD, ROOT, DependencyTree, highest_edus
from docmt.discourse.discourse_documents import (
    DiscourseDocument,
    Edu,
    edus_from_starts,
    iterate_discourse,
    sentences_of,
)
from docmt.discourse.other_parsers import BASELINES, RELATION, Parser, baseline
from docmt.discourse.parsing.parser import NeuralParser, load_parser, parser_from_bytes, reads_states_of, word_states
from docmt.discourse.segmentation.segmenter import Segmenter
from docmt.errors import UserError
from docmt.files import iterate_lines, read_bytes, read_lines, to_jsonl
from docmt.logs import progress
from docmt.text.tokenizer import get_tokenizer, sentence_words

log = logging.getLogger(__name__)

BATCH_WORDS = 20_000
"""Documents are segmented together once they hold this many words, so that the network gets full batches."""


@dataclass(frozen=True)
class PlainText:
    """A document as plain sentences."""

    id: str
    sentences: list[str]


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


def tokenize_batches(texts: Iterable[PlainText], *, lang: str) -> Iterator[list[DiscourseDocument]]:
    """Tokenize documents, in order, in batches; the document that brings a batch to `BATCH_WORDS` words is its last.

    Each sentence is one EDU.
    """
    # Not `fill_batches`, which ends a batch before its budget is exceeded: other sentences would be padded together,
    # which changes the last bits of their states and so the trees of finished studies.
    get_tokenizer(lang)  # an unknown language is refused before anything is read
    batch: list[DiscourseDocument] = []
    size = 0
    for text in texts:
        sentences = tuple(sentence_words(line, lang) for line in text.sentences)
        edus = tuple(Edu(number, 0, len(words)) for number, words in enumerate(sentences))
        batch.append(DiscourseDocument(text.id, sentences, edus))
        size += sum(1 + len(words) for words in sentences)  # empty sentences take memory too
        if size >= BATCH_WORDS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def with_edus(batch: Iterable[DiscourseDocument], starts: Iterable[Sequence[int]]) -> list[DiscourseDocument]:
    """Replace the EDUs of documents; a sentence without words has one EDU without words.

    `starts` has, for each sentence of all documents, the words other than the first at which an EDU begins.
    """
    remaining = iter(starts)
    documents = []
    for document in batch:
        own = itertools.islice(remaining, len(document.sentences))
        documents.append(replace(document, edus=edus_from_starts(own, map(len, document.sentences))))
    return documents


def segment_texts(texts: Iterable[PlainText], *, lang: str, segmenter: Segmenter) -> Iterator[DiscourseDocument]:
    """Segment documents, in order; memory use does not grow with their number."""
    n_sentences = n_empty = n_edus = 0
    for batch in tokenize_batches(texts, lang=lang):
        for document in with_edus(batch, segmenter.segment(sentences_of(batch))):
            n_sentences += len(document.sentences)
            n_empty += sum(not words for words in document.sentences)
            n_edus += len(document.edus)
            yield document
        trim_heap()
    log.info("%d sentences (%d of them empty), %d EDUs", n_sentences, n_empty, n_edus)


@dataclass
class Annotator:
    """Segments and parses documents.

    It can be sent to other processes, and makes its segmenter and parser once in each, for the first batch.
    """

    load: Callable[[], tuple[Segmenter, Parser]]
    sentences: SentenceTrees = "parser"  # where the tree of sentences comes from

    @cached_property
    def _models(self) -> tuple[Segmenter, Parser, NeuralParser | None]:
        segmenter, parser = self.load()
        state_reader = parser if isinstance(parser, NeuralParser) and reads_states_of(parser, segmenter) else None
        return segmenter, parser, state_reader

    def annotate(self, batch: Sequence[DiscourseDocument]) -> list[DiscourseDocument]:
        """Segment and parse tokenized documents."""
        documents = self._annotate(batch)
        trim_heap()  # word states of the batch are freed
        return documents

    def _annotate(self, batch: Sequence[DiscourseDocument]) -> list[DiscourseDocument]:
        # A parser that reads the states of this segmenter gets them from the segmentation: sentences are read once.
        segmenter, parser, state_reader = self._models
        readings = segmenter.read(sentences_of(batch))
        documents = with_edus(batch, [reading.starts for reading in readings])
        states = None
        if state_reader is not None:
            states = word_states(readings, documents, reads_lower=state_reader.settings.neural.reads_lower)
        annotated = parser.parse_batch(documents, states)
        return list(map(chain_sentences, annotated)) if self.sentences == "chain" else annotated

    def annotate_chunk(self, batches: Sequence[Sequence[DiscourseDocument]]) -> tuple[list[str], Counter[str]]:
        """Annotate batches; returns a line of JSON for each document, and what the parser counted."""
        # Lines and not documents, whose trees can be nested too deeply to be pickled.
        annotated = itertools.chain.from_iterable(map(self.annotate, batches))
        lines = [to_jsonl(document.to_json()) for document in annotated]
        counts = self._models[1].counts
        counted = Counter(counts)
        counts.clear()
        return lines, counted


def trim_heap() -> None:
    """Have glibc return freed memory to the operating system.

    Tensors of ever-changing sizes fragment the heap, which would grow with the number of batches. Other C libraries
    lack the function.
    """
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def load_models(segmenter: Path, parser: str) -> tuple[Segmenter, Parser]:
    """Load a segmenter and a parser by its name, for a process with one thread."""
    torch.set_num_threads(1)
    return Segmenter.load(segmenter), load_parser(parser)


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


def read_bundle(segmenter: Path, parser: str, *, sentences: SentenceTrees) -> DiscourseBundle:
    """Read both from their files; `parser` can be the name of a baseline."""
    data = read_bytes(segmenter)
    Segmenter.from_bytes(data, where=str(segmenter))  # which checks it
    if parser in BASELINES:
        return DiscourseBundle(parser, data, sentences)
    content = read_bytes(Path(parser))
    own = parser_from_bytes(content, where=parser).segmenter
    return DiscourseBundle(content, None if own == data else data, sentences)


def open_bundle(bundle: DiscourseBundle) -> tuple[Segmenter, Parser]:
    """Make the segmenter and the parser of a model file."""
    data = bundle.segmenter
    if isinstance(bundle.parser, str):
        if bundle.parser not in BASELINES:
            raise UserError(f"the model file: parser {bundle.parser!r}: no baseline of docmt: bundle it again")
        parser: Parser = baseline(bundle.parser)
    else:
        trained = parser_from_bytes(bundle.parser, where="the model file: parser")
        parser, data = trained.parser, data or trained.segmenter
    if data is None:
        raise UserError("the model file: has a parser without a segmenter: bundle them again")
    return Segmenter.from_bytes(data, where="the model file: segmenter"), parser


class BundleAnnotator:
    """Segments and parses documents of one language."""

    def __init__(self, bundle: DiscourseBundle, *, lang: str) -> None:
        self.lang = lang
        self.annotator = Annotator(partial(open_bundle, bundle), bundle.sentences)

    def annotate(self, documents: Sequence[Sequence[str]]) -> list[DiscourseDocument]:
        """EDUs and trees of documents, given as plain sentences."""
        texts = (PlainText(str(number), list(sentences)) for number, sentences in enumerate(documents, start=1))
        made = itertools.chain.from_iterable(map(self.annotator.annotate, tokenize_batches(texts, lang=self.lang)))
        return list(progress(made, label="segment and parse", unit="documents", total=len(documents)))
