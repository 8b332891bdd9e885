"""Settings of decoding."""

from typing import Literal

from pydantic import Field

from docmt.models.settings import Context
from docmt.settings import Settings

# Label smoothing of `label_smoothed`, that of Voita et al. (2019).
SMOOTHING = 0.1
Precision = Literal["auto", "float32", "bfloat16", "float16", "int8"]
ContrastScore = Literal["log_probability", "per_token", "label_smoothed"]


class DecodingSettings(Settings):
    """Beam search over instances, and the context that the encoder reads."""

    beam_size: int = Field(default=5, ge=1)
    """Beam size."""
    length_penalty: float = Field(default=1.0, ge=0, le=10)
    """Length normalization: the log probability of a hypothesis is divided by length^`length_penalty`."""
    max_length_ratio: float = Field(default=1.2, gt=0, le=1000)
    """Maximum length of a target sentence: ratio × source subwords + `max_length_offset`."""
    max_length_offset: int = Field(default=10, ge=1, le=100_000)
    """Number of subwords to add to the maximum length of a target sentence."""
    max_batch_tokens: int = Field(default=4096, ge=1)
    """Maximum number of source tokens per batch on a CPU. A GPU takes more (docs/decoding.md)."""
    context: Context = "document"
    """`document`, or `none` to translate each sentence without context (only for models with a context module).
    `joined` translates each instance as one sentence (only for published models, docs/pretrained.md)."""
    one_beam_per_instance: bool = False
    """Search all sentences of an instance in one beam, even if the model translates them independently. Document models
    always use one beam, so this is a control for them."""
    precision: Precision = "auto"
    """`auto`: bfloat16 on GPUs that support it, float32 otherwise. `float16`, on GPUs: eight times finer rounding than
    bfloat16, but models with large states overflow. `int8`, on CPUs: 8-bit weights, fastest and least exact. Candidates
    are always scored in float32."""


class DecodingSection(DecodingSettings):
    """Beam search over instances, the context that the encoder reads, and the number of parallel jobs."""

    n_shards: int = Field(default=1, ge=1)
    """Parallel jobs per test split and system. With more than 1, a further job joins the translations. Changing this
    reruns nothing."""
