"""What a model file may carry besides the model: a segmenter and a parser, so that plain text gets its trees.

`docmt.discourse.annotation` reads and uses them; here they are the bytes of their files.
"""

from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import torch

from docmt.errors import UserError

SentenceTrees = Literal["parser", "chain"]
"""Where the tree of sentences comes from, as for `docmt discourse annotate --sentences`."""


@dataclass(frozen=True)
class DiscourseBundle:
    """A segmenter and a parser."""

    parser: bytes | str  # the content of its file, or the name of a baseline
    segmenter: bytes | None  # the content of its file; None: the one that the parser reads
    sentences: SentenceTrees = "parser"  # where the tree of sentences comes from

    @classmethod
    def from_dict(cls, values: Any, *, where: str) -> Self:
        try:
            parser, segmenter, sentences = (values[name] for name in ("parser", "segmenter", "sentences"))
            if sentences not in get_args(SentenceTrees):
                raise ValueError(f"unknown trees of sentences {sentences!r}")
            parser = parser if isinstance(parser, str) else parser.numpy().tobytes()
            return cls(parser, None if segmenter is None else segmenter.numpy().tobytes(), sentences)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise UserError(f"{where}: its segmenter and parser are damaged ({error}): bundle them again") from None

    def to_dict(self) -> dict[str, Any]:
        # Bytes become tensors: torch.save stores them as they are, and loading with weights_only accepts them.
        return {
            name: torch.frombuffer(bytearray(value), dtype=torch.uint8) if isinstance(value, bytes) else value
            for name, value in (("parser", self.parser), ("segmenter", self.segmenter), ("sentences", self.sentences))
        }
