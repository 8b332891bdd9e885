"""The file of a trained parser: settings, classes, weights, the segmenter that it reads, scores, provenance."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from docmt.discourse.parsing.baselines import Parser
from docmt.discourse.parsing.linear_classifier import LinearClassifier
from docmt.discourse.parsing.linear_parser import LEVELS, LinearParser, SegmenterSyntax, missing_syntax
from docmt.discourse.parsing.neural_network import Ensemble, ParserNetwork
from docmt.discourse.parsing.neural_parser import NeuralParser
from docmt.discourse.parsing.settings import ParserSettings
from docmt.discourse.segmentation.segmenter import Segmenter, weights_refused
from docmt.files import atomic_path, read_bytes
from docmt.tensor_files import read_tensors

FORMAT = 1
KIND = "RST parser"
KEYS = ("settings", "relations", "words", "parts", "segmenter", "scores", "provenance")


@dataclass(frozen=True)
class TrainedParser:
    """A parser with its origin."""

    parser: NeuralParser | LinearParser  # neural or linear
    settings: ParserSettings  # of the parser; `kind` is never `auto`
    segmenter: bytes | None = None  # content of the model file of the segmenter that it reads; None if it reads none
    scores: dict[str, Any] = field(default_factory=dict)  # on the development set
    # Versions, settings, seed and data of the training; with `kind: auto`, both scores and the choice.
    provenance: dict[str, Any] = field(default_factory=dict)


def save_parser(path: Path, trained: TrainedParser) -> None:
    """Write a model file; it appears only when it is complete."""
    parser, data = trained.parser, trained.segmenter
    # Both kinds of parser use the same keys: for a linear one, `relations` are the levels of its classifiers.
    if isinstance(parser, NeuralParser):
        relations, words = list(parser.relations), list(parser.words)
        parts = [network.state_dict() for network in parser.ensemble.networks]
    else:
        relations, words = [name for name in LEVELS.values() if name in parser.relations], []
        parts = [part.to_dict() for part in (parser.actions, *(parser.relations[name] for name in relations))]
    content = {
        "format": FORMAT,
        "kind": KIND,
        "settings": trained.settings.model_dump(),
        "relations": relations,
        "words": words,
        "parts": parts,
        "segmenter": torch.frombuffer(bytearray(data), dtype=torch.uint8) if data is not None else None,
        "scores": trained.scores,
        "provenance": trained.provenance,
    }
    with atomic_path(path) as temporary:
        torch.save(content, temporary)


def load_trained_parser(path: Path) -> TrainedParser:
    """Read a model file, which holds tensors and plain values only, so nothing in it can run code."""
    return parser_from_bytes(read_bytes(path), where=str(path))


def parser_from_bytes(data: bytes, *, where: str) -> TrainedParser:
    """Read a parser from the bytes of its file."""
    mend = "train it with `docmt discourse train-parser`"
    content = read_tensors(data, where=where, what="a parser", mend=mend, format=FORMAT, kind=KIND, keys=KEYS)
    settings = ParserSettings.load(content["settings"], where=f"{where}: settings")
    read = content["segmenter"].numpy().tobytes() if content["segmenter"] is not None else None
    segmenter = Segmenter.from_bytes(read, where=f"{where}: segmenter") if read is not None else None
    try:
        parser = (_build_neural if settings.kind == "neural" else _build_linear)(settings, content, segmenter)
    except (RuntimeError, TypeError, AttributeError, KeyError, ValueError) as error:
        raise weights_refused(error, where=where) from None
    parser.sentence_constraint = settings.sentence_constraint
    parser.paragraph_constraint = settings.paragraph_constraint
    return TrainedParser(parser, settings, read, content["scores"], content["provenance"])


def _build_neural(settings: ParserSettings, content: dict[str, Any], segmenter: Segmenter | None) -> NeuralParser:
    relations, words = content["relations"], content["words"]
    if segmenter is None:
        raise ValueError("the segmenter whose word states it reads is missing")
    reads_lower = settings.neural.layers == "both"
    width = segmenter.width + (segmenter.lower_width if reads_lower else 0)
    networks = []
    for weights in content["parts"]:
        network = ParserNetwork(width, len(words), len(relations), settings.neural)
        network.load_state_dict(weights)
        networks.append(network.eval())
    if not networks:
        raise ValueError("there are no networks")
    return NeuralParser(Ensemble(networks), tuple(relations), tuple(words), segmenter, reads_lower=reads_lower)


def _build_linear(settings: ParserSettings, content: dict[str, Any], segmenter: Segmenter | None) -> LinearParser:
    actions, *classifiers = map(LinearClassifier.from_dict, content["parts"])
    relations = {name: classifiers[content["relations"].index(name)] for name in LEVELS.values()}
    parser = LinearParser(actions, relations, reads_nucleus=settings.linear.words == "nucleus")
    if settings.linear.syntax == "segmenter":
        if segmenter is None:
            raise ValueError("the segmenter whose syntax it reads is missing")
        parser.syntax = SegmenterSyntax(segmenter)
    elif settings.linear.syntax == "file":
        parser.syntax = missing_syntax
    return parser


def reads_states_of(parser: Parser, segmenter: Segmenter) -> bool:
    """Whether a parser reads the word states of this segmenter, so that its states can be passed to `parse_batch`."""
    if not isinstance(parser, NeuralParser):
        return False
    # Compared by content: the parser's file holds a copy of its segmenter.
    own = parser.segmenter
    weights, others = own.network.state_dict(), segmenter.network.state_dict()
    return (
        own.settings == segmenter.settings
        and own.vocabulary == segmenter.vocabulary
        and all(torch.equal(weights[name], others[name]) for name in weights)
    )
