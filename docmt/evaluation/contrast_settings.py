"""Settings of contrastive test sets."""

from typing import Literal

from docmt.decoding.settings import ContrastScore
from docmt.settings import Settings

TargetContext = Literal["gold", "own"]
Ties = Literal["wrong", "first"]


class ContrastSettings(Settings):
    """Comparison of the candidates of contrastive test sets."""

    score: ContrastScore = "log_probability"
    """Score of a candidate's whole target document: its log probability, the mean of it per label, or the negative of
    the training loss with label smoothing 0.1, as in the results of Voita et al. (2019)."""
    context: TargetContext = "gold"
    """Target sentences before the tested one: from the test set (`gold`), or the system's translation (`own`)."""
    ties: Ties = "wrong"
    """If no candidate scores strictly highest: `wrong`, or `first`: the first of the highest wins (as in the scripts of
    Voita et al., where the right candidate often stands first)."""
