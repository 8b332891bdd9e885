"""Annotation of plain documents: reading, tokenizing, segmenting and parsing, in batches."""

import ctypes
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import torch

from docmt.batching import fill_batches
from docmt.corpora.documents import DocumentIndex, iterate_files
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
from docmt.files import read_bytes, read_lines, to_jsonl
from docmt.logs import progress
from docmt.text.tokenizer import get_tokenizer, sentence_words

log = logging.getLogger(__name__)

BATCH_WORDS = 20_000
"""Minimum number of words in documents segmented together, so that the network gets full batches."""


@dataclass(frozen=True)
class PlainText:
    """A document as plain sentences."""

    id: str
    sentences: list[str]


def read_texts(text: Path, documents: Path) -> Iterator[PlainText]:
    """Yield the documents in `PREFIX.{lang}` with its index."""
    for document in iterate_files(documents, [text]):
        yield PlainText(document.id, list(document.src))


def blank_line_texts(path: Path) -> Iterator[PlainText]:
    """Yield the documents in a text with blank lines between documents. Their ids are numbers from 1."""
    groups = itertools.groupby(read_lines(path), key=lambda line: not line.strip())
    number = 0
    for is_blank, lines in groups:
        if not is_blank:
            number += 1
            yield PlainText(str(number), [line.removesuffix("\r") for line in lines])


def tokenize_batches(texts: Iterable[PlainText], *, lang: str) -> Iterator[list[DiscourseDocument]]:
    """Yield batches of up to `BATCH_WORDS` words of tokenized documents, in order. Every sentence is one EDU."""
    get_tokenizer(lang)  # rejects an unknown language before reading

    def tokenize(text: PlainText) -> DiscourseDocument:
        sentences = []
        edus = []
        for number, line in enumerate(text.sentences):
            words = sentence_words(line, lang)
            sentences.append(words)
            edus.append(Edu(number, 0, len(words)))
        return DiscourseDocument(text.id, tuple(sentences), tuple(edus))

    # Empty sentences take memory too.
    yield from fill_batches(
        map(tokenize, texts), BATCH_WORDS, cost=lambda document: sum(1 + len(words) for words in document.sentences)
    )


def with_edus(batch: Iterable[DiscourseDocument], starts: Iterable[Sequence[int]]) -> list[DiscourseDocument]:
    """Replace the EDUs of documents. A sentence without words has one EDU without words.

    `starts` contains the inner EDU starts per sentence (see `inner_starts`).
    """
    remaining = iter(starts)
    documents = []
    for document in batch:
        inner = itertools.islice(remaining, len(document.sentences))
        documents.append(replace(document, edus=edus_from_starts(inner, map(len, document.sentences))))
    return documents


def segment_texts(texts: Iterable[PlainText], *, lang: str, segmenter: Segmenter) -> Iterator[DiscourseDocument]:
    """Segment documents in order and in constant memory."""
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

    It can be pickled for other processes. Every process loads segmenter and parser on the first batch.
    """

    load: Callable[[], tuple[Segmenter, Parser]]
    sentence_trees: SentenceTrees = "parser"  # source of the trees over sentences

    @cached_property
    def _models(self) -> tuple[Segmenter, Parser, NeuralParser | None]:
        segmenter, parser = self.load()
        state_reader = None
        if isinstance(parser, NeuralParser) and reads_states_of(parser, segmenter):
            state_reader = parser
        return segmenter, parser, state_reader

    def annotate(self, batch: Sequence[DiscourseDocument]) -> list[DiscourseDocument]:
        """Segment and parse tokenized documents."""
        # A parser on the states of this segmenter gets them from the segmentation, so that sentences are encoded once.
        segmenter, parser, state_reader = self._models
        outputs = segmenter.encode(sentences_of(batch))
        documents = with_edus(batch, [output.starts for output in outputs])
        states = None
        if state_reader is not None:
            states = word_states(outputs, documents, reads_lower=state_reader.settings.neural.reads_lower)
        annotated = parser.parse_batch(documents, states)
        del outputs, states
        trim_heap()
        if self.sentence_trees == "chain":
            annotated = list(map(chain_sentences, annotated))
        return annotated

    def annotate_chunk(self, batches: Sequence[Sequence[DiscourseDocument]]) -> tuple[list[str], Counter[str]]:
        """Annotate batches. Returns the documents as lines of JSON, and the parser's counts."""
        # Not documents, whose trees can be nested too deeply for pickling.
        annotated = itertools.chain.from_iterable(map(self.annotate, batches))
        lines = [to_jsonl(document.to_json()) for document in annotated]
        counts = self._models[1].counts
        counted = Counter(counts)
        counts.clear()
        return lines, counted


def trim_heap() -> None:
    """Let glibc return freed memory to the operating system.

    Tensors with varying sizes fragment the heap, so that it would grow with the number of batches. Other C libraries
    lack this function.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)


def load_annotators(segmenter: Path, parser: str) -> tuple[Segmenter, Parser]:
    """Load a segmenter and a parser by name, for a process with one thread."""
    torch.set_num_threads(1)
    return Segmenter.load(segmenter), load_parser(parser)


def chain_sentences(document: DiscourseDocument) -> DiscourseDocument:
    """Keep arcs inside sentences, and attach every sentence to the previous one.

    The highest EDU in a sentence depends on the highest EDU in the previous sentence. Other EDUs with heads outside
    their sentence depend on the highest EDU in their sentence.
    """
    sentence_of = [edu.sentence for edu in document.edus]
    arcs = document.dependencies
    highest = highest_edus(arcs.heads, sentence_of, len(document.sentences))
    heads = list(arcs.heads)
    relations = list(arcs.relations)
    for edu, (head, sentence) in enumerate(zip(arcs.heads, sentence_of, strict=True)):
        if edu == highest[sentence]:
            heads[edu] = NO_HEAD if sentence == 0 else highest[sentence - 1]
        elif sentence_of[head] != sentence:
            heads[edu] = highest[sentence]
        if heads[edu] != head:
            relations[edu] = ROOT if heads[edu] == NO_HEAD else RELATION
    return replace(document, tree=None, arcs=DependencyTree(tuple(heads), tuple(relations)))


def rename(files: Sequence[Path], index: DocumentIndex) -> Iterator[DiscourseDocument]:
    """Yield the documents in files in order, with the ids from the index of a text with the same documents."""
    parsed = itertools.chain.from_iterable(map(iterate_discourse, files))
    names = ", ".join(map(str, files))
    for name in index.ids:
        document = next(parsed, None)
        # In a combined text, the corpus name precedes the document ids.
        if document is None or not f"/{name}".endswith(f"/{document.id}"):
            there = repr(document.id) if document else "none"
            raise UserError(f"{names}: expected the trees of {name!r} next, found {there}")
        yield replace(document, id=name)
    if next(parsed, None) is not None:
        raise UserError(f"{names}: more documents than in the text ({len(index.ids)})")


def read_bundle(segmenter: Path, parser: str, *, sentences: SentenceTrees) -> DiscourseBundle:
    """Read segmenter and parser from their files. `parser` can also be a baseline."""
    data = read_bytes(segmenter)
    Segmenter.from_bytes(data, where=str(segmenter))  # checks the file
    if parser in BASELINES:
        return DiscourseBundle(parser, data, sentences)
    content = read_bytes(Path(parser))
    if parser_from_bytes(content, where=parser).segmenter == data:
        return DiscourseBundle(content, None, sentences)
    return DiscourseBundle(content, data, sentences)


def open_bundle(bundle: DiscourseBundle) -> tuple[Segmenter, Parser]:
    """Load the segmenter and the parser in a model file."""
    data = bundle.segmenter
    if isinstance(bundle.parser, str):
        if bundle.parser not in BASELINES:
            raise UserError(f"the model file: unknown parser {bundle.parser!r}: run `docmt models add-parser` again")
        parser: Parser = baseline(bundle.parser)
    else:
        trained = parser_from_bytes(bundle.parser, where="the model file: parser")
        parser = trained.parser
        data = data or trained.segmenter
    if data is None:
        raise UserError("the model file: contains a parser without a segmenter: run `docmt models add-parser` again")
    return Segmenter.from_bytes(data, where="the model file: segmenter"), parser


class BundleAnnotator:
    """Segments and parses plain documents in one language."""

    def __init__(self, bundle: DiscourseBundle, *, lang: str) -> None:
        self.lang = lang
        self.annotator = Annotator(partial(open_bundle, bundle), bundle.sentence_trees)

    def annotate(self, documents: Sequence[Sequence[str]]) -> list[DiscourseDocument]:
        """Return documents with EDUs and trees, from lists of plain sentences."""
        texts = (PlainText(str(number), list(sentences)) for number, sentences in enumerate(documents, start=1))
        annotated = itertools.chain.from_iterable(map(self.annotator.annotate, tokenize_batches(texts, lang=self.lang)))
        return list(progress(annotated, label="segment and parse", unit="documents", total=len(documents)))
