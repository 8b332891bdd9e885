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
            parser, segmenter, sentences = (values[name] for name in ("parser", "segmenter", "sentences"))
            if sentences not in get_args(SentenceTrees):
                raise ValueError(f"unknown trees of sentences {sentences!r}")
            parser = parser if isinstance(parser, str) else parser.numpy().tobytes()
            return cls(parser, None if segmenter is None else segmenter.numpy().tobytes(), sentences)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise UserError(f"{where}: damaged segmenter or parser ({error}): add them again") from None

    def to_dict(self) -> dict[str, Any]:
        # Bytes become tensors, which torch.save stores unchanged and loading with weights_only accepts.
        return {
            name: torch.frombuffer(bytearray(value), dtype=torch.uint8) if isinstance(value, bytes) else value
            for name, value in (
                ("parser", self.parser),
                ("segmenter", self.segmenter),
                ("sentences", self.sentence_trees),
            )
        }
