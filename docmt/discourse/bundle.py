"""Segmenter and parser inside a model file, so that plain text can be translated with trees.

Here, they are the bytes of their files. `docmt.discourse.annotation` loads and uses them.
"""

from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import torch

from docmt.errors import UserError

SentenceTrees = Literal["parser", "chain"]
"""Source of the trees over sentences, as in `docmt discourse annotate --sentences`."""


@dataclass(frozen=True)
class DiscourseBundle:
    """A segmenter and a parser."""

    parser: bytes | str  # file content, or the name of a baseline
    segmenter: bytes | None  # file content (None: the parser's segmenter)
    sentence_trees: SentenceTrees = "parser"  # source of the trees over sentences

    @classmethod
    def from_dict(cls, values: Any, *, where: str) -> Self:
        try:
            parser = values["parser"]
            segmenter = values["segmenter"]
            sentences = values["sentences"]
            if sentences not in get_args(SentenceTrees):
                raise ValueError(f"unknown trees of sentences {sentences!r}")
            if not isinstance(parser, str):
                parser = parser.numpy().tobytes()
            if segmenter is not None:
                segmenter = segmenter.numpy().tobytes()
            return cls(parser, segmenter, sentences)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise UserError(f"{where}: damaged segmenter or parser ({error}): add them again") from None

    def to_dict(self) -> dict[str, Any]:
        # Bytes become tensors, which torch.save stores unchanged and loading with weights_only accepts.
        values: dict[str, Any] = {
            "parser": self.parser,
            "segmenter": self.segmenter,
            "sentences": self.sentence_trees,
        }
        for name, value in values.items():
            if isinstance(value, bytes):
                values[name] = torch.frombuffer(bytearray(value), dtype=torch.uint8)
        return values
