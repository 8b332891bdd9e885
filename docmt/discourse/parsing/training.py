"""Training parsers from files, and scoring them on the development set."""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from docmt.discourse.documents import DiscourseDocument, read_discourse
from docmt.discourse.parsing.ensemble import Ensemble
from docmt.discourse.parsing.evaluation import evaluate
from docmt.discourse.parsing.linear import LinearParser, SegmenterSyntax, SyntaxSource, no_syntax, train_linear
from docmt.discourse.parsing.model_file import TrainedParser
from docmt.discourse.parsing.neural import NeuralParser, word_states
from docmt.discourse.parsing.neural_examples import learn_words, make_example, number_words
from docmt.discourse.parsing.neural_training import train_member
from docmt.discourse.parsing.preparation import relation_names, training_tree
from docmt.discourse.parsing.settings import ParserSettings
from docmt.discourse.relations import load_inventory
from docmt.discourse.segmentation.model_file import segmenter_of
from docmt.discourse.segmentation.prediction import Segmenter
from docmt.discourse.syntax import read_syntax
from docmt.discourse.trees import Node
from docmt.errors import UserError
from docmt.files import read_bytes
from docmt.provenance import describe

log = logging.getLogger(__name__)


def coarse_classes(inventory: str | None) -> Callable[[str], str]:
    """Return the mapping from fine to coarse relations; without an inventory, relations stay unchanged."""
    return load_inventory(inventory).coarse if inventory else str


@dataclass(frozen=True)
class TrainingData:
    """Documents with binary trees of coarse relations."""

    documents: list[DiscourseDocument]
    trees: list[Node]

    @classmethod
    def read(cls, prefix: Path, settings: ParserSettings) -> "TrainingData":
        """Read `PREFIX.discourse.jsonl`, except documents without EDUs.

        Raises UserError when a document has no tree or a relation is not in the inventory.
        """
        coarse = coarse_classes(settings.relations)
        documents = [document for document in read_discourse(_discourse(prefix)) if document.edus]
        return cls(documents, [training_tree(document, coarse) for document in documents])


def train_files(
    *, train: Path, dev: Path, segmenter: Path | None, settings: ParserSettings, seed: int
) -> TrainedParser:
    """Train on `TRAIN.discourse.jsonl` and score on `DEV.discourse.jsonl`.

    The neural parser, and the linear one with `syntax: segmenter`, need the model file of a segmenter. With
    `kind: auto`, the parser with the higher F (original Parseval, gold EDUs, paragraphs where they are known) is kept;
    the neural one if both are equal. Raises UserError when a file is malformed, a segmenter is missing or not used, or
    `auto` has nothing to compare.
    """
    if settings.reads_segmenter != (segmenter is not None):
        raise UserError(
            "train-parser: this parser reads the states or the syntax of a segmenter: give --segmenter MODEL"
            if settings.reads_segmenter
            else "train-parser: the linear parser reads a segmenter only with syntax: segmenter; leave --segmenter out"
        )
    data = read_bytes(segmenter) if segmenter is not None else None
    model = Segmenter(segmenter_of(data, where=str(segmenter))) if data is not None else None
    training = TrainingData.read(train, settings)
    relation_names(training.trees)
    gold = read_discourse(_discourse(dev))
    if settings.kind == "auto" and all(document.tree is None or document.tree.is_leaf for document in gold):
        raise UserError(
            f"train-parser: {_discourse(dev)} has no tree of two EDUs or more on which kind: auto could compare parsers"
        )
    parsers: dict[str, NeuralParser | LinearParser] = {}
    scores: dict[str, dict[str, Any]] = {}
    for kind in settings.kinds:
        if kind == "neural":
            parsers[kind] = _train_neural(training, model, settings, seed=seed)
        else:
            parsers[kind] = parser = _train_linear(training, train, model, settings, seed=seed)
            if settings.linear.syntax == "file":
                parser.syntax = _file_syntax(dev, gold)
        scores[kind] = score_variants(parsers[kind], gold, coarse_classes(settings.relations))
        for name, found in scores[kind].items():
            log.info("development set, %s, %s parser: original Parseval %s", name, kind, found["parseval"])
    kept, comparison = _compare(scores)
    facts = {"segmenter": hashlib.sha256(data).hexdigest()} if data is not None else {}
    provenance = describe(
        settings=settings.model_dump(), seed=seed, train_documents=len(training.documents), **facts, **comparison
    )
    settings = settings.model_copy(update={"kind": kept})
    return TrainedParser(parsers[kept], settings, data if settings.reads_segmenter else None, scores[kept], provenance)


def _compare(scores: Mapping[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Choose the kind of parser with the highest F, the first of equal ones, from what `score_variants` returns.

    Returns the kind, and what provenance says of the choice: nothing where there was none.
    """
    dev_f = {kind: next(iter(variants.values()))["parseval"]["F"] for kind, variants in scores.items()}
    kept = max(dev_f, key=dev_f.__getitem__)
    if len(dev_f) == 1:
        return kept, {}
    found = ", ".join(f"{kind} {value}" for kind, value in dev_f.items())
    log.info("kind: auto keeps the %s parser; F on the development set: %s", kept, found)
    return kept, {"kept": kept, "dev_f": dev_f}


def score_variants(
    parser: NeuralParser | LinearParser, gold: Sequence[DiscourseDocument], coarse: Callable[[str], str]
) -> dict[str, Any]:
    """Score a parser on gold EDUs: with paragraphs, if any document has them, and without."""
    scores = {}
    for name, documents in (
        ("with paragraphs", list(gold)),
        ("without paragraphs", [replace(document, paragraphs=None) for document in gold]),
    ):
        if name == "with paragraphs" and all(document.paragraphs is None for document in gold):
            continue
        scores[name] = evaluate(zip(gold, parser.parse_batch(documents), strict=True), coarse=coarse)
    return scores


def _file_syntax(prefix: Path, documents: Sequence[DiscourseDocument]) -> SyntaxSource:
    """The syntax of any of the documents, from `PREFIX.syntax.jsonl`, which has that of all."""
    syntax = read_syntax(Path(f"{prefix}.syntax.jsonl"), documents)
    known = {document.id: own for document, own in zip(documents, syntax, strict=True)}
    return lambda chosen: [known[document.id] for document in chosen]


def _train_neural(
    training: TrainingData, segmenter: Segmenter | None, settings: ParserSettings, *, seed: int
) -> NeuralParser:
    assert segmenter is not None  # train_files has checked
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
    source: SyntaxSource = no_syntax
    if settings.linear.syntax == "file":
        source = _file_syntax(prefix, read_discourse(_discourse(prefix)))
    elif settings.linear.syntax == "segmenter" and segmenter is not None:
        source = SegmenterSyntax(segmenter)
    parser = train_linear(documents, training.trees, source(documents), settings.linear, seed=seed)
    parser.syntax = source
    parser.sentence_constraint = settings.sentence_constraint
    parser.paragraph_constraint = settings.paragraph_constraint
    return parser


def _discourse(prefix: Path) -> Path:
    return Path(f"{prefix}.discourse.jsonl")
