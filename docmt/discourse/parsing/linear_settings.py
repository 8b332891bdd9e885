"""Settings of the linear parser."""

from typing import Literal

from pydantic import Field

from docmt.settings import Settings


class LinearSettings(Settings):
    """The two-stage linear parser and its training."""

    syntax: Literal["none", "file", "segmenter"] = "none"
    """Source of parts of speech and dependencies: none; the file *.syntax.jsonl beside the documents, in training and
    in parsing; or the auxiliary predictions of a segmenter."""
    words: Literal["edges", "nucleus"] = Field(default="edges", exclude_if=lambda words: words == "edges")
    """Words of a span that are features: those at its edges; or also all words of its nucleus EDU and the characters at
    its edges, which helps with small treebanks."""
    cost: float = Field(default=1.0, gt=0)
    """C of the support vector machines (L1 penalty, squared hinge loss)."""
    tolerance: float = Field(default=1e-3, gt=0)
    """Stopping criterion of the solver."""
    max_iterations: int = Field(default=200, ge=1)
    """Maximum number of passes of the solver per class."""
    min_count: int = Field(default=2, ge=1)
    """Features of fewer states are left out."""
    paragraph_dropout: float = Field(default=0.35, ge=0, le=1)
    """Share of training documents whose paragraphs are hidden, so that the parser also works without paragraphs."""
