"""Settings of decoding."""

from typing import ClassVar, Literal

from pydantic import Field

from docmt.models.settings import Context
from docmt.settings import Settings

# Label smoothing of `label_smoothed`, that of Voita et al. (2019).
SMOOTHING = 0.1
Precision = Literal["auto", "float32", "bfloat16", "float16", "int8"]
ContrastScore = Literal["log_probability", "per_token", "label_smoothed"]


class DecodingSettings(Settings):
    """Beam search over whole instances, and what the encoder reads."""

    later: ClassVar[tuple[str, ...]] = ("one_beam_per_instance", "shortlist")

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
    one_beam_per_instance: bool = False
    """All sentences of an instance share one beam even in models whose target sentences do not see one another, which
    otherwise search each sentence by itself. A control: in document models they always share it."""
    precision: Precision = "auto"
    """`auto` is bfloat16 on a GPU that has it and float32 elsewhere. `float16`, for GPUs, rounds eight times finer than
    bfloat16, and overflows in models whose states grow large. `int8` is for CPUs: weights in 8 bits, the fastest and
    least exact; given translations are then scored in float32."""
    shortlist: int | None = Field(default=None, ge=1)
    """Compute only this many target symbols for each symbol of the source, by word alignments of the training text, and
    as many of the most frequent ones; for large vocabularies. Null computes all symbols."""
