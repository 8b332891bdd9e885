"""Settings of a trained parser."""

from typing import Literal

from docmt.discourse.parsing.linear_settings import LinearSettings
from docmt.discourse.parsing.neural_settings import NeuralSettings
from docmt.settings import Settings


class ParserSettings(Settings):
    """An RST parser and its training."""

    kind: Literal["neural", "linear", "auto"] = "neural"
    """`neural`: networks on the word states of a segmenter; `linear`: two stages of support vector machines; `auto`:
    both are trained, and the one with the higher F on the development set is kept."""
    relations: str | None = None
    """Inventory whose coarse classes are learned (`gum`, `gcdt`, `rst_dt`, `controlled`); null: the relations of the
    training trees, unchanged."""
    sentence_constraint: bool = True
    """Make every sentence one complete subtree."""
    paragraph_constraint: bool = False
    """Make every paragraph one complete subtree, where paragraphs are known."""
    neural: NeuralSettings = NeuralSettings()
    """The neural parser."""
    linear: LinearSettings = LinearSettings()
    """The linear parser."""

    @property
    def kinds(self) -> tuple[Literal["neural", "linear"], ...]:
        """The kinds of parser to train; of equally good ones, the first is kept."""
        return ("neural", "linear") if self.kind == "auto" else (self.kind,)

    @property
    def reads_segmenter(self) -> bool:
        """Whether a parser with these settings reads the states or the syntax of a segmenter."""
        return "neural" in self.kinds or self.linear.syntax == "segmenter"
