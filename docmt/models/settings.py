"""Model settings: sizes and attention patterns."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, WithJsonSchema, model_validator

from docmt.errors import UserError
from docmt.models.attention.patterns import NO_GATE, PATTERNS, Fusion, find_pattern, part_names, pattern_slots
from docmt.models.systems.context_traits import CONTEXTS, ContextTraits
from docmt.settings import Settings, one_of

Context = Literal["document", "none", "joined"]
"""What the encoder reads. Models with a context module read whole documents (`document`) or single sentences (`none`).
A sentence model with `joined` reads each instance as one sentence."""
Positions = Literal["instance", "sentence"]
"""Range in which positions count."""


MAX_LAYERS = 1000
"""A model file with more is refused, because layers take memory before the weights can be compared."""


_PATTERNS = WithJsonSchema({"enum": [name for name in PATTERNS if pattern_slots(name)], "type": "string"})
PatternName = Annotated[str, one_of(PATTERNS.keys, "must be an attention pattern"), _PATTERNS]
_CONTEXTS = WithJsonSchema({"enum": list(CONTEXTS), "type": "string"})
ContextName = Annotated[str, one_of(CONTEXTS.keys, "must be a context module"), _CONTEXTS]


class AttentionSettings(Settings):
    """Attention patterns of lower and upper layers (docs/models.md)."""

    lower: PatternName = "global"
    """Pattern of the lower layers."""
    upper: PatternName = "global"
    """Pattern of the upper layers."""
    upper_layers: int = Field(default=2, ge=0)
    """Number of upper layers."""

    def pattern(self, layer: int, n_layers: int) -> str:
        """Return the pattern in layer `layer` (from 0) of `n_layers`."""
        if layer >= n_layers - self.upper_layers:
            return self.upper
        return self.lower

    def patterns(self) -> set[str]:
        if self.upper_layers:
            return {self.lower, self.upper}
        return {self.lower}


class ContextSettings(Settings):
    """A context module for a sentence-level encoder and decoder, which can also translate without it."""

    kind: ContextName = "global"
    """`global`: context encoder of cross-task pre-training. `doct`, `han_encoder`, `han`, `san`, `cadec`: baselines of
    the papers (docs/models.md)."""
    sentences: int | None = Field(default=None, ge=1)
    """Number of preceding sentences to read, for `doct`, `han_encoder`, `han` and `cadec`. Default: as in the paper (2
    for `doct`, otherwise 3)."""
    future: bool = True
    """Also read later sentences, for `san`."""
    layers: int | None = Field(default=None, ge=1)
    """Number of context-encoder layers N_g, for `global`. Layer i shares self-attention and feed-forward with encoder
    layer i. Default: as many as the encoder."""
    positions: Positions = "sentence"
    """Positions in the context encoder, for `global`. With `instance`, they encode the order of sentences."""
    norm: bool = True
    """Layer norm after the attention to sentences, for `global`. Without it, a pretrained sentence model translates as
    before until it learns to use context."""

    @property
    def traits(self) -> ContextTraits:
        return CONTEXTS[self.kind]

    @model_validator(mode="after")
    def _check(self) -> Self:
        keys = set(type(self).model_fields) - {"kind", *self.traits.settings}
        for key in sorted(keys & self.model_fields_set):
            if getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"kind {self.kind!r} does not use the key {key!r}: remove it")
        return self


class FormSettings(Settings):
    """Layer variants. The defaults follow the papers, and published models differ (docs/pretrained.md)."""

    activation: Literal["relu", "gelu", "swish"] = "relu"
    """Activation of the feed-forward modules."""
    norm: Literal["post", "pre"] = "post"
    """Layer norm after each residual sum (`post`), or before each attention and feed-forward module (`pre`)."""
    embedding_norm: bool = False
    """Layer norm after the embeddings of encoder and decoder."""
    final_norm: bool = False
    """Layer norm after the last layer of encoder and decoder."""
    learned_positions: int | None = Field(default=None, ge=1)
    """Number of learned positions in encoder and decoder. Default: sinusoidal positions."""
    learned_sentences: int | None = Field(default=None, ge=1)
    """Number of learned sentence embeddings, added to each source word. Later sentences of an instance share the last
    one. Default: none."""
    position_offset: int = Field(default=0, ge=0, le=10_000)
    """Number of the first sinusoidal position."""
    output_bias: bool = False
    """Bias in the output layer."""
    zero_start: bool = False
    """Zero embedding of `<s>`, as in Marian."""

    def check_positions(self, n_positions: int) -> None:
        """Raise UserError if there are fewer learned positions than `n_positions`."""
        if self.learned_positions is not None and n_positions > self.learned_positions:
            raise UserError(
                f"the input has {n_positions} tokens, but the model has only {self.learned_positions} learned "
                "positions: lower max_tokens of the instances, or set model.positions to 'sentence'"
            )


class MarkSettings(Settings):
    """Boundary symbols of sentences. `{src}` and `{tgt}` stand for language tags. A target always ends in `</s>`."""

    src_before: list[str] = ["<s>"]
    """Symbols before a source sentence."""
    src_after: list[str] = ["</s>"]
    """Symbols after a source sentence."""
    tgt_before: list[str] = Field(default=["<s>"], min_length=1, max_length=2)
    """Symbols before a target sentence. The first is the first decoder input, and the second is forced as the first
    word."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not (self.src_before or self.src_after):
            raise ValueError(
                "src_before and src_after are both empty: an empty sentence would have no token to attend to"
            )
        if "</s>" in self.tgt_before[1:]:
            raise ValueError("tgt_before: </s> as the first word would end every sentence")
        return self


class ModelSettings(Settings):
    """A Transformer over packed tokens."""

    encoder_layers: int = Field(default=6, ge=1, le=MAX_LAYERS)
    """Number of encoder layers."""
    decoder_layers: int = Field(default=6, ge=1, le=MAX_LAYERS)
    """Number of decoder layers."""
    width: int = Field(default=512, ge=2)
    """Width of embeddings and hidden states."""
    heads: int = Field(default=8, ge=1)
    """Number of attention heads."""
    feed_forward_width: int = Field(default=2048, ge=1)
    """Hidden width of the feed-forward modules."""
    dropout: float = Field(default=0.3, ge=0, lt=1)
    """Dropout after embeddings, attention and feed-forward modules."""
    encoder_attention: AttentionSettings = AttentionSettings()
    """Self-attention of the encoder."""
    decoder_attention: AttentionSettings = AttentionSettings()
    """Self-attention of the decoder."""
    cross_attention: AttentionSettings = AttentionSettings()
    """Attention from target to source."""
    context: ContextSettings | None = None
    """Context module. Default: none."""
    window_sentences: int = Field(default=2, ge=0)
    """Number of preceding sentences in the attention patterns `window` and `segments`."""
    positions: Positions = "instance"
    """Positions: counted through the `instance`, or restarted in each `sentence`."""
    target_stream: Literal["aligned", "free"] = "aligned"
    """`aligned`: one target sentence per source sentence. `free`: one target sequence of any number of sentences."""
    form: FormSettings = FormSettings()
    """Layer variants."""
    marks: MarkSettings | None = None
    """Boundary symbols of sentences. Default: `<s>` and `</s>`, with a language tag in place of `<s>` if the vocabulary
    has tags."""

    @property
    def n_src_boundaries(self) -> tuple[int, int]:
        """Numbers of boundary tokens before and after a source sentence."""
        if self.marks is None:
            return (1, 1)
        return (len(self.marks.src_before), len(self.marks.src_after))

    @property
    def needs_trees(self) -> bool:
        return any(find_pattern(part).needs_trees for name in self.patterns() for part in part_names(name))

    @property
    def n_before(self) -> int:
        """Number of previous sentences that the context module reads. 0 without such a limit."""
        if self.context is None:
            return 0
        return self.context.sentences or self.context.traits.sentences

    @property
    def drafts(self) -> bool:
        """True if the sentence model drafts a translation for a second decoder."""
        return self.context is not None and self.context.traits.drafts

    @property
    def context_layers(self) -> int:
        """Layers in the global context encoder, 0 without one."""
        if self.context is None or self.context.kind != "global":
            return 0
        if self.context.layers is None:
            return self.encoder_layers
        return self.context.layers

    @property
    def decodes_sentences_alone(self) -> bool:
        """True if no target sentence depends on another, so that every sentence can have a separate search."""
        patterns = self.decoder_attention.patterns() | self.cross_attention.patterns()
        sees_target = self.context is not None and self.context.traits.sees_target
        return patterns == {"group"} and self.positions == "sentence" and not sees_target

    @property
    def sees_single_sentences(self) -> bool:
        """True if no attention sees beyond a sentence."""
        return self.context is None and self.patterns() == {"group"} and self.form.learned_sentences is None

    @property
    def attentions(self) -> dict[Literal["encoder", "decoder", "cross"], AttentionSettings]:
        return {"encoder": self.encoder_attention, "decoder": self.decoder_attention, "cross": self.cross_attention}

    @property
    def n_starts(self) -> int:
        """Number of boundary tokens before a target sentence."""
        if self.marks is None:
            return 1
        return len(self.marks.tgt_before)

    def patterns(self) -> set[str]:
        """Return the patterns that occur in any attention."""
        return set().union(*(attention.patterns() for attention in self.attentions.values()))

    def shapes(self) -> dict[str, Any]:
        """Return the settings that must equal the settings of an initial model, if both models have them."""
        keys = ("width", "heads", "feed_forward_width", "encoder_layers", "decoder_layers")
        # Copied weights also mean something else with another norm, activation or position.
        forms = ("embedding_norm", "final_norm", "learned_positions", "output_bias")
        forms += ("norm", "activation", "position_offset")
        values = {key: getattr(self, key) for key in keys}
        values |= {f"form.{key}": getattr(self.form, key) for key in forms}
        if self.form.learned_sentences is not None:
            values["form.learned_sentences"] = self.form.learned_sentences
        if self.drafts:
            values["context.sentences"] = self.n_before
        return values

    def check_zero_init(self) -> None:
        """Raise UserError if a model cannot start equal to its sentence model (`init_new_parameters: zero`)."""
        for name in self.patterns():
            pattern = PATTERNS[name]
            if isinstance(pattern, Fusion) and not pattern.has_gate:
                raise UserError(NO_GATE)
        context = self.context
        if context is not None and not context.traits.can_start_without_effect:
            raise UserError(
                "init_new_parameters 'zero': not supported for this context module: remove the key, or use "
                "context kind 'global'"
            )
        if context is None or context.kind != "global":  # only this kind reads the keys below
            return
        if context.norm or context.positions != "sentence" or context.layers is not None:
            raise UserError(
                "init_new_parameters 'zero': a context encoder starts without effect only with norm false, positions "
                "'sentence' and layers null: set these keys of model.context"
            )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.width % (2 * self.heads):
            raise ValueError(f"width {self.width} must be a multiple of 2 × heads ({2 * self.heads})")
        for name, attention in self.attentions.items():
            side = "decoder"
            if name == "encoder":
                side = "encoder"
            layers = getattr(self, f"{side}_layers")
            if attention.upper_layers > layers:
                raise ValueError(
                    f"{name}_attention.upper_layers {attention.upper_layers} is more than {side}_layers {layers}"
                )
            for pattern in attention.patterns():
                slots = pattern_slots(pattern)
                if name not in slots:
                    attentions = "context modules"
                    if slots:
                        attentions = f"{' and '.join(slots)} attention"
                    raise ValueError(f"{name}_attention: {pattern} is a pattern for {attentions}")
            if self.target_stream == "free" and {attention.lower, attention.upper} != {"global"}:
                raise ValueError(f"target_stream 'free' has no groups, so all {name}_attention must be global")
            if self.context is not None and attention.patterns() != {"group"}:
                raise ValueError(f"context requires {name}_attention to be group in all layers")
        return self

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if self.context is not None and self.positions != "sentence":
            raise ValueError("context requires positions 'sentence'")
        if self.context is not None and self.form.norm == "pre":
            raise ValueError("context requires form.norm 'post'")
        if self.marks is not None and len(self.marks.tgt_before) > 1 and self.target_stream == "free":
            raise ValueError("target_stream 'free' starts sentences with one symbol, but marks.tgt_before has two")
        if self.marks is not None and self.marks.tgt_before == ["</s>"] and self.target_stream == "free":
            raise ValueError("target_stream 'free' ends sentences with </s>, but marks.tgt_before starts them with it")
        if self.form.learned_positions and self.form.position_offset:
            raise ValueError("form.position_offset is for sinusoids, but form.learned_positions is set")
        if self.context_layers > self.encoder_layers:
            raise ValueError(
                f"context.layers {self.context_layers} is more than encoder_layers {self.encoder_layers}: "
                "each layer of the context encoder shares a layer of the encoder"
            )
        return self
