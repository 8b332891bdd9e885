"""Training parsers from files, and scoring them on the development set."""

import hashlib
import logging
from dataclasses import replace
from pathlib import Path

from docmt.discourse.constituents import SPAN, Node, binarize
from docmt.discourse.documents import DiscourseDocument, read_discourse
from docmt.discourse.parsing.evaluation import Coarse, coarse_classes, evaluate
from docmt.discourse.parsing.model_file import TrainedParser
from docmt.discourse.parsing.neural_training import train_neural
from docmt.discourse.parsing.settings import ParserSettings
from docmt.discourse.segmentation.segmenter import Segmenter
from docmt.errors import UserError
from docmt.files import read_bytes
from docmt.provenance import describe

log = logging.getLogger(__name__)


def train_parser(*, train: Path, dev: Path, segmenter: Path, settings: ParserSettings, seed: int) -> TrainedParser:
    """Train on `TRAIN.discourse.jsonl` and score on `DEV.discourse.jsonl`; `segmenter` is a model file."""
    data = read_bytes(segmenter)
    model = Segmenter.from_bytes(data, where=str(segmenter))
    coarse = coarse_classes(settings.relations)
    documents = [document for document in read_discourse(Path(f"{train}.discourse.jsonl")) if document.edus]
    trees = [training_tree(document, coarse) for document in documents]
    relations = sorted({node.relation for tree in trees for node in tree.postorder() if not node.is_leaf})
    if not relations:
        raise UserError("parser training: no document has two EDUs or more, so there is nothing to learn")
    gold = read_discourse(Path(f"{dev}.discourse.jsonl"))
    parser = train_neural(documents, trees, model, settings, relations=relations, seed=seed)
    # On gold EDUs: with paragraphs, if any document has them, and without.
    variants = {"without paragraphs": [replace(document, paragraphs=None) for document in gold]}
    if any(document.paragraphs is not None for document in gold):
        variants = {"with paragraphs": gold} | variants
    scores = {}
    for name, variant in variants.items():
        scores[name] = evaluate(zip(gold, parser.parse_batch(variant), strict=True), coarse=coarse)
        log.info("development set, %s: original Parseval %s", name, scores[name]["parseval"])
    provenance = describe(
        settings=settings.model_dump(),
        seed=seed,
        train_documents=len(documents),
        segmenter=hashlib.sha256(data).hexdigest(),
    )
    return TrainedParser(parser, settings, data, scores, provenance)


def training_tree(document: DiscourseDocument, coarse: Coarse) -> Node:
    """Return the tree of a document, binarized, with coarse relations."""
    if document.tree is None:
        raise UserError(f"parser training: document {document.id!r} has no tree: train on gold trees")

    def rename(node: Node, children: list[Node]) -> Node:
        names = tuple(name if name == SPAN else coarse(name) for name in node.relations)
        return Node(node.first, node.last, tuple(children), node.nuclearity, names)

    return binarize(document.tree.fold(rename))
