"""Settings of decoding."""

from typing import Literal

from pydantic import Field

from docmt.models.settings import Context
from docmt.settings import Settings

SMOOTHING = 0.1
"""Label smoothing of `label_smoothed`, that of Voita et al. (2019)."""
ContrastScore = Literal["log_probability", "per_token", "label_smoothed"]
TargetContext = Literal["gold", "own"]
Ties = Literal["wrong", "first"]


class ContrastSettings(Settings):
    """How the candidates of contrastive test sets are compared."""

    score: ContrastScore = "log_probability"
    """Of a candidate's whole target document: its log probability, the mean of it per label, or the negative of the
    training loss with label smoothing 0.1, as in the results of Voita et al. (2019)."""
    context: TargetContext = "gold"
    """Target sentences before the tested one: those of the test set (`gold`), or the system's translation (`own`)."""
    ties: Ties = "wrong"
    """Where no candidate scores strictly highest: `wrong`, or `first`, the first of the highest wins (the scripts of
    Voita et al. do so, and the right candidate often stands first)."""


class DecodingSettings(Settings):
    """Beam search over whole instances, and what the encoder reads."""

    beam_size: int = Field(default=5, ge=1)
    """Hypotheses kept at each step."""
    length_penalty: float = Field(default=1.0, ge=0)
    """A hypothesis's score is its log probability divided by its length to this power."""
    max_length_ratio: float = Field(default=1.2, gt=0)
    """A target sentence has at most ratio × source subwords + offset subwords."""
    max_length_offset: int = Field(default=10, ge=1)
    """See max_length_ratio."""
    max_batch_tokens: int = Field(default=4096, ge=1)
    """Most source tokens decoded side by side on a CPU; translation on a GPU takes more (docs/decoding.md)."""
    context: Context = "document"
    """What a model with a context encoder reads: `document`, or `none` to translate every sentence by itself. Other
    models have no choice."""
    precision: Literal["auto", "float32", "bfloat16", "int8"] = "auto"
    """`auto` is bfloat16 on a GPU and float32 on a CPU. `int8` is for CPUs: weights in 8 bits, the fastest and least
    exact; given translations are then scored in float32."""
