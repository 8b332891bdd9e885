"""The file of a trained parser: settings, classes, weights, the segmenter that it reads, scores, provenance."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from docmt.discourse.parsing.baselines import Parser
from docmt.discourse.parsing.ensemble import Ensemble
from docmt.discourse.parsing.linear import LEVELS, LinearParser, SegmenterSyntax
from docmt.discourse.parsing.linear_model import LinearClassifier
from docmt.discourse.parsing.neural import NeuralParser
from docmt.discourse.parsing.neural_model import ParserNetwork
from docmt.discourse.parsing.settings import ParserSettings
from docmt.discourse.segmentation.model_file import segmenter_of
from docmt.discourse.segmentation.prediction import Segmenter
from docmt.errors import UserError
from docmt.files import atomic_path, read_bytes
from docmt.tensors import read_tensors

FORMAT = 1
KIND = "RST parser"
KEYS = ("settings", "relations", "words", "parts", "segmenter", "scores", "provenance")


@dataclass(frozen=True)
class TrainedParser:
    """Everything that parsing needs.

    Attributes:
        parser: neural or linear.
        settings: of the parser; `kind` is never `auto`.
        segmenter: the contents of the file of the segmenter that it reads; None if it reads none.
        scores: on the development set.
        provenance: versions, settings, seed and data of the training; with `kind: auto`, both scores and the choice.
    """

    parser: NeuralParser | LinearParser
    settings: ParserSettings
    segmenter: bytes | None = None
    scores: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)


def save_parser(path: Path, trained: TrainedParser) -> None:
    """Write a model file; it appears only when it is complete."""
    parser, data = trained.parser, trained.segmenter
    if isinstance(parser, NeuralParser):
        relations, words = list(parser.relations), list(parser.words)
        parts = [network.state_dict() for network in parser.ensemble.networks]
    else:
        names = [name for name in LEVELS.values() if name in parser.relations]
        relations, words = names, []
        parts = [parser.actions.to_dict(), *(parser.relations[name].to_dict() for name in names)]
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


def load_trained(path: Path) -> TrainedParser:
    """Read a model file: tensors and plain values only, nothing that could run code.

    Raises UserError when it is missing, damaged, of another kind or format, or inconsistent.
    """
    return parser_of(read_bytes(path), where=str(path))


def parser_of(data: bytes, *, where: str) -> TrainedParser:
    """Read a parser from the bytes of its file; raises UserError as `load_trained` does."""
    content = read_tensors(
        data,
        where=where,
        what="a parser",
        mend="train it with `docmt discourse train-parser`",
        format=FORMAT,
        kind=KIND,
        keys=KEYS,
    )
    settings = ParserSettings.load(content["settings"], where=f"{where}: settings")
    read = content["segmenter"].numpy().tobytes() if content["segmenter"] is not None else None
    segmenter = Segmenter(segmenter_of(read, where=f"{where}: segmenter")) if read is not None else None
    try:
        if settings.kind == "neural":
            parser = _build_neural(settings, content, segmenter)
        else:
            parser = _build_linear(settings, content["relations"], content["parts"], segmenter)
    except (RuntimeError, TypeError, AttributeError, KeyError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{where}: weights and settings do not match ({reason}): train it again") from None
    return TrainedParser(parser, settings, read, content["scores"], content["provenance"])


def reads_states_of(parser: Parser, segmenter: Segmenter) -> bool:
    """Whether a parser reads the word states of a segmenter with these weights and words.

    If so, a caller that has read sentences with the segmenter can pass the states to `parse_batch`.
    """
    if not isinstance(parser, NeuralParser):
        return False
    own, other = parser.segmenter.trained, segmenter.trained
    weights, others = own.network.state_dict(), other.network.state_dict()
    return (
        own.settings == other.settings
        and own.vocabulary == other.vocabulary
        and all(torch.equal(weights[name], others[name]) for name in weights)
    )


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
    return NeuralParser(
        Ensemble(networks),
        tuple(relations),
        tuple(words),
        segmenter,
        reads_lower=reads_lower,
        sentence_constraint=settings.sentence_constraint,
        paragraph_constraint=settings.paragraph_constraint,
    )


def _build_linear(
    settings: ParserSettings, levels: Sequence[str], parts: Sequence[dict[str, Any]], segmenter: Segmenter | None
) -> LinearParser:
    actions, *relations = map(LinearClassifier.from_dict, parts)
    parser = LinearParser(
        actions,
        {name: relations[levels.index(name)] for name in LEVELS.values()},
        sentence_constraint=settings.sentence_constraint,
        paragraph_constraint=settings.paragraph_constraint,
        reads_nucleus=settings.linear.words == "nucleus",
    )
    if settings.linear.syntax == "segmenter":
        if segmenter is None:
            raise ValueError("the segmenter whose syntax it reads is missing")
        parser.syntax = SegmenterSyntax(segmenter)
    return parser
