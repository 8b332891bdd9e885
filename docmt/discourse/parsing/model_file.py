"""The file of a trained parser: settings, classes, weights, the segmenter that it reads, scores, provenance."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from docmt.discourse.parsing.neural_network import Ensemble, ParserNetwork
from docmt.discourse.parsing.neural_parser import NeuralParser
from docmt.discourse.parsing.settings import ParserSettings
from docmt.discourse.segmentation.segmenter import Segmenter, weights_refused
from docmt.files import atomic_path, read_bytes
from docmt.tensor_files import read_tensors

FORMAT = 2
KIND = "RST parser"
KEYS = ("settings", "relations", "words", "parts", "segmenter", "scores", "provenance")


@dataclass(frozen=True)
class TrainedParser:
    """A parser with its origin."""

    parser: NeuralParser
    settings: ParserSettings  # of the parser
    segmenter: bytes  # content of the model file of the segmenter that it reads
    scores: dict[str, Any] = field(default_factory=dict)  # on the development set
    provenance: dict[str, Any] = field(default_factory=dict)  # versions, settings, seed and data of the training


def save_parser(path: Path, trained: TrainedParser) -> None:
    """Write a model file; it appears only when it is complete."""
    parser = trained.parser
    content = {
        "format": FORMAT,
        "kind": KIND,
        "settings": trained.settings.model_dump(),
        "relations": list(parser.relations),
        "words": list(parser.words),
        "parts": [network.state_dict() for network in parser.ensemble.networks],
        "segmenter": torch.frombuffer(bytearray(trained.segmenter), dtype=torch.uint8),
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
    try:
        data = content["segmenter"].numpy().tobytes()
        segmenter = Segmenter.from_bytes(data, where=f"{where}: segmenter")
        relations, words = content["relations"], content["words"]
        reads_lower = settings.neural.layers == "both"
        width = segmenter.width + (segmenter.lower_width if reads_lower else 0)
        networks = []
        for weights in content["parts"]:
            network = ParserNetwork(width, len(words), len(relations), settings.neural)
            network.load_state_dict(weights)
            networks.append(network.eval())
        if not networks:
            raise ValueError("there are no networks")
    except (RuntimeError, TypeError, AttributeError, KeyError, ValueError) as error:
        raise weights_refused(error, where=where) from None
    parser = NeuralParser(
        Ensemble(networks),
        tuple(relations),
        tuple(words),
        segmenter,
        reads_lower=reads_lower,
        sentence_constraint=settings.sentence_constraint,
        paragraph_constraint=settings.paragraph_constraint,
    )
    return TrainedParser(parser, settings, data, content["scores"], content["provenance"])


def reads_states_of(parser: NeuralParser, segmenter: Segmenter) -> bool:
    """Whether a parser reads the word states of this segmenter, so that its states can be passed to `parse_batch`."""
    # Compared by content: the parser's file holds a copy of its segmenter.
    own = parser.segmenter
    weights, others = own.network.state_dict(), segmenter.network.state_dict()
    return (
        own.settings == segmenter.settings
        and own.vocabulary == segmenter.vocabulary
        and all(torch.equal(weights[name], others[name]) for name in weights)
    )
