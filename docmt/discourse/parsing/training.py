"""Training a parser from files, and scoring it on the development set."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from docmt.discourse.documents import DiscourseDocument, read_discourse
from docmt.discourse.parsing.ensemble import Ensemble
from docmt.discourse.parsing.evaluation import evaluate
from docmt.discourse.parsing.linear import LinearParser, SegmenterSyntax, train_linear
from docmt.discourse.parsing.model_file import TrainedParser, digest
from docmt.discourse.parsing.neural import NeuralParser, word_states
from docmt.discourse.parsing.neural_examples import learn_words, make_example, number_words
from docmt.discourse.parsing.neural_training import train_member
from docmt.discourse.parsing.preparation import relation_names, training_tree
from docmt.discourse.parsing.settings import ParserSettings
from docmt.discourse.relations import load_inventory
from docmt.discourse.segmentation.model_file import segmenter_of
from docmt.discourse.segmentation.prediction import Segmenter
from docmt.discourse.syntax import DocumentSyntax, read_syntax
from docmt.discourse.trees import Node
from docmt.errors import UserError
from docmt.files import read_bytes
from docmt.provenance import describe

log = logging.getLogger(__name__)


def coarse_classes(inventory: str | None) -> Callable[[str], str]:
    """The function from fine to coarse relations; without inventory, relations stay as they are."""
    return load_inventory(inventory).coarse if inventory else str


@dataclass(frozen=True)
class TrainingData:
    """Documents with binary trees of coarse relations."""

    documents: list[DiscourseDocument]
    trees: list[Node]

    @classmethod
    def read(cls, prefix: Path, settings: ParserSettings) -> "TrainingData":
        """Read `PREFIX.discourse.jsonl`; documents without EDUs are left out.

        Raises UserError when a document has no tree or a relation is not in the inventory.
        """
        coarse = coarse_classes(settings.relations)
        documents = [document for document in read_discourse(_discourse(prefix)) if document.edus]
        return cls(documents, [training_tree(document, coarse) for document in documents])


def train_files(
    *, train: Path, dev: Path, segmenter: Path | None, settings: ParserSettings, seed: int
) -> TrainedParser:
    """Train on `TRAIN.discourse.jsonl` and score on `DEV.discourse.jsonl`.

    Args:
        train, dev: file names without `.discourse.jsonl`.
        segmenter: model file; needed by the neural parser, and by the linear one with `syntax: segmenter`.
        seed: of everything random.

    Raises UserError when a file is malformed or a segmenter is missing or not used.
    """
    needs_segmenter = settings.kind == "neural" or settings.linear.syntax == "segmenter"
    if needs_segmenter != (segmenter is not None):
        raise UserError(
            "train-parser: this parser reads the states or the syntax of a segmenter: give --segmenter MODEL"
            if needs_segmenter
            else "train-parser: the linear parser reads a segmenter only with syntax: segmenter; leave --segmenter out"
        )
    data = read_bytes(segmenter) if segmenter is not None else None
    model = Segmenter(segmenter_of(data, where=str(segmenter))) if data is not None else None
    training = TrainingData.read(train, settings)
    relation_names(training.trees)
    if settings.kind == "neural":
        parser = _train_neural(training, model, settings, seed=seed)
    else:
        parser = _train_linear(training, train, model, settings, seed=seed)
    gold = read_discourse(_discourse(dev))
    if settings.kind == "linear" and settings.linear.syntax == "file":
        parser.syntax = FileSyntax(gold, read_syntax(_syntax(dev), gold))
    scores = score_variants(parser, gold, coarse_classes(settings.relations))
    for name, found in scores.items():
        log.info("development set, %s: original Parseval %s", name, found["parseval"])
    facts = {"segmenter": digest(data)} if data is not None else {}
    provenance = describe(settings=settings.model_dump(), seed=seed, train_documents=len(training.documents), **facts)
    return TrainedParser(parser, settings, data, scores, provenance)


def score_variants(
    parser: NeuralParser | LinearParser, gold: Sequence[DiscourseDocument], coarse: Callable[[str], str]
) -> dict[str, Any]:
    """Scores with gold EDUs, with paragraphs as they are known and without any."""
    scores = {}
    for name, documents in (
        ("with paragraphs", list(gold)),
        ("without paragraphs", [replace(document, paragraphs=None) for document in gold]),
    ):
        if name == "with paragraphs" and all(document.paragraphs is None for document in gold):
            continue
        scores[name] = evaluate(zip(gold, parser.parse_batch(documents), strict=True), coarse=coarse)
    return scores


@dataclass(frozen=True)
class FileSyntax:
    """The syntax of known documents, by their ids."""

    documents: Sequence[DiscourseDocument]
    syntax: Sequence[DocumentSyntax]

    def __call__(self, documents: Sequence[DiscourseDocument]) -> list[DocumentSyntax]:
        """The syntax of documents. Raises UserError for one that is not known."""
        known = {document.id: syntax for document, syntax in zip(self.documents, self.syntax, strict=True)}
        if missing := [document.id for document in documents if document.id not in known]:
            raise UserError(f"syntax: there is none for document {missing[0]!r}")
        return [known[document.id] for document in documents]


def _train_neural(training: TrainingData, segmenter: Segmenter, settings: ParserSettings, *, seed: int) -> NeuralParser:
    relations = relation_names(training.trees)
    words = learn_words(training.documents, min_count=settings.neural.min_word_count)
    reads_lower = settings.neural.layers == "both"
    readings = segmenter.read([own for document in training.documents for own in document.sentences])
    states = word_states(readings, training.documents, reads_lower=reads_lower)
    examples = [
        make_example(document, tree, own, relations=relations, numbers=number_words(words))
        for document, tree, own in zip(training.documents, training.trees, states, strict=True)
        if not tree.is_leaf
    ]
    sizes = {"n_words": len(words), "n_relations": len(relations)}
    networks = [
        train_member(examples, **sizes, settings=settings.neural, seed=1000 * seed + member)
        for member in range(settings.neural.members)
    ]
    return NeuralParser(
        Ensemble(networks),
        relations,
        words,
        segmenter,
        reads_lower=reads_lower,
        sentence_constraint=settings.sentence_constraint,
        paragraph_constraint=settings.paragraph_constraint,
    )


def _train_linear(
    training: TrainingData, prefix: Path, segmenter: Segmenter | None, settings: ParserSettings, *, seed: int
) -> LinearParser:
    documents = training.documents
    syntax: Sequence[DocumentSyntax | None] = [None] * len(documents)
    if settings.linear.syntax == "file":
        everything = read_discourse(_discourse(prefix))
        syntax = FileSyntax(everything, read_syntax(_syntax(prefix), everything))(documents)
    elif segmenter is not None:
        syntax = SegmenterSyntax(segmenter)(documents)
    parser = train_linear(documents, training.trees, syntax, settings.linear, seed=seed)
    parser.sentence_constraint = settings.sentence_constraint
    parser.paragraph_constraint = settings.paragraph_constraint
    if segmenter is not None:
        parser.syntax = SegmenterSyntax(segmenter)
    return parser


def _discourse(prefix: Path) -> Path:
    return Path(f"{prefix}.discourse.jsonl")


def _syntax(prefix: Path) -> Path:
    return Path(f"{prefix}.syntax.jsonl")
