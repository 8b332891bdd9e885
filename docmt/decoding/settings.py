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

    later: ClassVar[tuple[str, ...]] = ("one_beam_per_instance",)

    beam_size: int = Field(default=5, ge=1)
    """Hypotheses kept at each step."""
    length_penalty: float = Field(default=1.0, ge=0, le=10)
    """A hypothesis's log probability is divided by its length to this power."""
    max_length_ratio: float = Field(default=1.2, gt=0, le=1000)
    """A target sentence has at most ratio × source subwords + offset subwords."""
    max_length_offset: int = Field(default=10, ge=1, le=100_000)
    """See max_length_ratio."""
    max_batch_tokens: int = Field(default=4096, ge=1)
    """Most source tokens decoded at once on a CPU; a GPU takes more (docs/decoding.md)."""
    context: Context = "document"
    """For models with a context encoder: `none` translates every sentence by itself."""
    one_beam_per_instance: bool = False
    """One beam for all sentences of an instance even where target sentences do not see one another: a control for
    document models, which always share it."""
    precision: Precision = "auto"
    """`auto`: bfloat16 on a GPU that has it, float32 elsewhere. `float16`, for GPUs, rounds eight times finer than
    bfloat16, but overflows in models with large states. `int8`, for CPUs: 8-bit weights, fastest and least exact; given
    translations are scored in float32."""
