"""A trained segmenter in one file: settings, vocabulary, weights, development scores, provenance."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from docmt.discourse.segmentation.network import SegmenterNetwork
from docmt.discourse.segmentation.settings import SegmenterSettings
from docmt.discourse.segmentation.vocabulary import WordVocabulary
from docmt.errors import UserError
from docmt.files import atomic_path, read_bytes
from docmt.tensor_files import read_tensors

FORMAT = 1
KIND = "EDU segmenter"
KEYS = ("settings", "vocabulary", "weights", "scores", "provenance")


@dataclass(frozen=True)
class TrainedSegmenter:
    """A segmenter with its origin.

    Attributes:
        network: on the CPU, in evaluation mode.
        settings, vocabulary: of the network.
        scores: on the development set, with the training history.
        provenance: versions, settings, seed and data of the training.
    """

    network: SegmenterNetwork
    settings: SegmenterSettings
    vocabulary: WordVocabulary
    scores: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)


def save_segmenter(path: Path, trained: TrainedSegmenter) -> None:
    """Write a model file; it appears only when complete."""
    content = {
        "format": FORMAT,
        "kind": KIND,
        "settings": trained.settings.model_dump(),
        "vocabulary": trained.vocabulary.to_dict(),
        "weights": trained.network.state_dict(),
        "scores": trained.scores,
        "provenance": trained.provenance,
    }
    with atomic_path(path) as temporary:
        torch.save(content, temporary)


def load_segmenter(path: Path) -> TrainedSegmenter:
    """Read a model file, which holds tensors and plain values only, so nothing in it can run code."""
    return segmenter_from_bytes(read_bytes(path), where=str(path))


def segmenter_from_bytes(data: bytes, *, where: str) -> TrainedSegmenter:
    """Read a segmenter from the bytes of its file."""
    content = read_tensors(
        data,
        where=where,
        what="a segmenter",
        mend="train it with `docmt discourse train-segmenter`",
        format=FORMAT,
        kind=KIND,
        keys=KEYS,
    )
    settings = SegmenterSettings.load(content["settings"], where=f"{where}: settings")
    vocabulary = WordVocabulary.from_dict(content["vocabulary"])
    network = SegmenterNetwork(settings.network, vocabulary)
    try:
        network.load_state_dict(content["weights"])
    except (RuntimeError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{where}: weights and settings do not match ({reason}): train it again") from None
    return TrainedSegmenter(network.eval(), settings, vocabulary, content["scores"], content["provenance"])
