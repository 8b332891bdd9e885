"""Settings of a trained parser."""

from typing import Literal

from docmt.discourse.parsing.linear_settings import LinearSettings
from docmt.discourse.parsing.neural_settings import NeuralSettings
from docmt.settings import Settings


class ParserSettings(Settings):
    """An RST parser and its training."""

    kind: Literal["neural", "linear"] = "neural"
    """`neural`: networks on the word states of a segmenter; `linear`: two stages of support vector machines."""
    relations: str | None = None
    """Inventory whose coarse classes are learnt (`gum`, `gcdt`, `rst_dt`, `controlled`); null: relations as they
    stand in the training trees."""
    sentence_constraint: bool = True
    """Every sentence becomes one complete subtree."""
    paragraph_constraint: bool = False
    """Every paragraph becomes one complete subtree, where paragraphs are known."""
    neural: NeuralSettings = NeuralSettings()
    """The neural parser."""
    linear: LinearSettings = LinearSettings()
    """The linear parser."""
