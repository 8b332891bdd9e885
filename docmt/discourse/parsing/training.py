"""Training parsers from files, and scoring them on the development set."""

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from docmt.discourse.constituents import SPAN, Node, binarize
from docmt.discourse.documents import DiscourseDocument, read_discourse
from docmt.discourse.parsing.evaluation import Coarse, coarse_classes, evaluate
from docmt.discourse.parsing.linear_parser import LinearParser, SegmenterSyntax, SyntaxSource, no_syntax, train_linear
from docmt.discourse.parsing.model_file import TrainedParser
from docmt.discourse.parsing.neural_parser import NeuralParser
from docmt.discourse.parsing.neural_training import train_neural
from docmt.discourse.parsing.settings import ParserSettings
from docmt.discourse.segmentation.segmenter import Segmenter
from docmt.discourse.syntax import read_syntax
from docmt.errors import UserError
from docmt.files import read_bytes
from docmt.provenance import describe

log = logging.getLogger(__name__)


def train_parser(
    *, train: Path, dev: Path, segmenter: Path | None, settings: ParserSettings, seed: int
) -> TrainedParser:
    """Train on `TRAIN.discourse.jsonl` and score on `DEV.discourse.jsonl`.

    The neural parser, and the linear one with `syntax: segmenter`, need the model file of a segmenter. With
    `kind: auto`, the parser with the higher F (original Parseval, gold EDUs, paragraphs where they are known) is kept;
    the neural one if both are equal.
    """
    if settings.reads_segmenter != (segmenter is not None):
        raise UserError(
            "train-parser: this parser reads the states or the syntax of a segmenter: give --segmenter MODEL"
            if settings.reads_segmenter
            else "train-parser: the linear parser reads a segmenter only with syntax: segmenter; leave --segmenter out"
        )
    data = read_bytes(segmenter) if segmenter is not None else None
    model = Segmenter.from_bytes(data, where=str(segmenter)) if data is not None else None
    coarse = coarse_classes(settings.relations)
    everything = read_discourse(Path(f"{train}.discourse.jsonl"))
    documents = [document for document in everything if document.edus]
    trees = [training_tree(document, coarse) for document in documents]
    relations = relation_names(trees)
    gold = read_discourse(Path(f"{dev}.discourse.jsonl"))
    if settings.kind == "auto" and all(document.tree is None or document.tree.is_leaf for document in gold):
        raise UserError(
            f"train-parser: {dev}.discourse.jsonl has no tree of two EDUs or more on which kind: auto could compare "
            "parsers"
        )
    parsers: dict[str, NeuralParser | LinearParser] = {}
    scores: dict[str, dict[str, Any]] = {}
    for kind in settings.kinds:
        if kind == "neural":
            assert model is not None  # `reads_segmenter` of a neural parser
            parser = train_neural(documents, trees, model, settings.neural, relations=relations, seed=seed)
        else:
            source: SyntaxSource = (
                SegmenterSyntax(model) if model and settings.linear.syntax == "segmenter" else no_syntax
            )
            reads_file = settings.linear.syntax == "file"
            found = (_file_syntax(train, everything) if reads_file else source)(documents)
            parser = train_linear(documents, trees, found, settings.linear, seed=seed)
            parser.syntax = _file_syntax(dev, gold) if reads_file else source
        parser.sentence_constraint = settings.sentence_constraint
        parser.paragraph_constraint = settings.paragraph_constraint
        parsers[kind], scores[kind] = parser, score_variants(parser, gold, coarse)
        for name, row in scores[kind].items():
            log.info("development set, %s, %s parser: original Parseval %s", name, kind, row["parseval"])
    kept, dev_f = best_kind(scores)
    facts: dict[str, Any] = {"segmenter": hashlib.sha256(data).hexdigest()} if data is not None else {}
    if len(dev_f) > 1:
        shown = ", ".join(f"{kind} {value}" for kind, value in dev_f.items())
        log.info("kind: auto keeps the %s parser; F on the development set: %s", kept, shown)
        facts |= {"kept": kept, "dev_f": dev_f}
    provenance = describe(settings=settings.model_dump(), seed=seed, train_documents=len(documents), **facts)
    settings = settings.model_copy(update={"kind": kept})
    return TrainedParser(parsers[kept], settings, data if settings.reads_segmenter else None, scores[kept], provenance)


def training_tree(document: DiscourseDocument, coarse: Coarse) -> Node:
    """Return the tree of a document, binarized, with coarse relations."""
    if document.tree is None:
        raise UserError(f"parser training: document {document.id!r} has no tree: train on gold trees")

    def rename(node: Node, children: list[Node]) -> Node:
        names = tuple(name if name == SPAN else coarse(name) for name in node.relations)
        return Node(node.first, node.last, tuple(children), node.nuclearity, names)

    return binarize(document.tree.fold(rename))


def relation_names(trees: Iterable[Node]) -> tuple[str, ...]:
    """Return all relations of the trees, sorted."""
    names = {node.relation for tree in trees for node in tree.postorder() if not node.is_leaf}
    if not names:
        raise UserError("parser training: no document has two EDUs or more, so there is nothing to learn")
    return tuple(sorted(names))


def best_kind(scores: Mapping[str, dict[str, Any]]) -> tuple[str, dict[str, float]]:
    """Return the kind of parser with the highest F, the first of equal ones, and the F of all kinds."""
    # The first variant is the one with paragraphs, where they are known.
    dev_f = {kind: next(iter(variants.values()))["parseval"]["F"] for kind, variants in scores.items()}
    return max(dev_f, key=dev_f.__getitem__), dev_f


def score_variants(
    parser: NeuralParser | LinearParser, gold: Sequence[DiscourseDocument], coarse: Coarse
) -> dict[str, Any]:
    """Score a parser on gold EDUs: with paragraphs, if any document has them, and without."""
    variants = {"without paragraphs": [replace(document, paragraphs=None) for document in gold]}
    if any(document.paragraphs is not None for document in gold):
        variants = {"with paragraphs": list(gold)} | variants
    return {
        name: evaluate(zip(gold, parser.parse_batch(documents), strict=True), coarse=coarse)
        for name, documents in variants.items()
    }


def _file_syntax(prefix: Path, documents: Sequence[DiscourseDocument]) -> SyntaxSource:
    """Look up the syntax of any of the documents in `PREFIX.syntax.jsonl`, which holds all of them."""
    syntax = read_syntax(Path(f"{prefix}.syntax.jsonl"), documents)
    known = {document.id: own for document, own in zip(documents, syntax, strict=True)}
    return lambda chosen: [known[document.id] for document in chosen]
