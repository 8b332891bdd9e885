"""The interface of context modules: the places in a sentence Transformer where they act, and how they read context.

`ContextTransformer` in context_transformer.py calls the module. The other files in this folder have one paper's module
per file. In training, a module reads context for all tokens at once, and in a search for the newest token of every
hypothesis. Both go through a `ContextReader`.

Shape letters: S packed source tokens, N packed target tokens or, step by step, rows (hypotheses), J previous sentences,
C context states, D width.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from torch import Tensor, nn
from typing_extensions import override

from docmt.models.attention.kernels import ragged_attention
from docmt.models.attention.layout import DeviceLayout
from docmt.models.attention.multi_head import MultiHeadAttention
from docmt.models.attention.patterns import Slot
from docmt.models.layers import DecoderLayer, EncoderLayer
from docmt.models.numerics import call_layer
from docmt.models.systems.transformer import Transformer


@dataclass(frozen=True)
class SourceBatch:
    """The source side of a batch, embedded for the first encoder layer, and the encoder layers.

    `embed` returns token embeddings, [N, D], from tokens, layout and side. Its option `within` is the range for
    positions.
    """

    tokens_S: Tensor
    embedded_SD: Tensor
    layout: DeviceLayout
    layers: Sequence[EncoderLayer]
    embed: Callable[..., Tensor]


@dataclass(frozen=True)
class TargetBatch:
    """The target side of a batch, with the states from a first pass and the memory (encoder states).

    `decode` returns the sentence model's target states, [N, D], from tokens, encoder states and a layout.
    """

    inputs_N: Tensor
    embedded_ND: Tensor
    states_ND: Tensor
    memory_SD: Tensor
    layout: DeviceLayout
    decode: Callable[[Tensor, Tensor, DeviceLayout], Tensor]


class ContextReader(ABC):
    """Attention from the tokens on one side to context, packed or one step at a time."""

    @abstractmethod
    def numbers(self) -> Tensor:
        """Return the number in the document of the sentence of every token, from 0, int64 [N]."""

    @abstractmethod
    def attend_context(self, part: MultiHeadAttention, query_ND: Tensor) -> Tensor:
        """Attend to the context states for the sentence, see `ContextModule.before_encoder`, [N, D].

        The output is meaningless for sentences without context.
        """

    @abstractmethod
    def attend_previous(self, part: MultiHeadAttention, query_ND: Tensor, states_ND: Tensor, n_before: int) -> Tensor:
        """Attend separately to the J = `n_before` previous sentences, the nearest first, [J, N, D].

        The output for sentences that do not exist is finite. `states_ND` are the states of the tokens themselves.
        """


@dataclass(frozen=True)
class PackedReader(ContextReader):
    """Reads context for all tokens on a side at once. `slot` is for attention to the context states."""

    layout: DeviceLayout
    side: Literal["src", "tgt"]
    rows_CD: Tensor | None = None
    slot: Slot = "src_before"

    @override
    def numbers(self) -> Tensor:
        return self.layout.index(self.side, "number")

    @override
    def attend_context(self, part: MultiHeadAttention, query_ND: Tensor) -> Tensor:
        return part(query_ND, self.rows_CD, partial(self.layout.grouping, self.slot))

    @override
    def attend_previous(self, part: MultiHeadAttention, query_ND: Tensor, states_ND: Tensor, n_before: int) -> Tensor:
        indexes = self.layout.grouping("encoder" if self.side == "src" else "decoder", "each_before")
        query_NHK, key_NHK, value_NHK = part.project(query_ND, states_ND)
        output = ragged_attention(query_NHK.repeat(n_before, 1, 1), key_NHK, value_NHK, indexes)
        return part.out(output.flatten(1)).unflatten(0, (n_before, -1))


@dataclass(frozen=True)
class DecoderPass:
    """Decoder layers with the memory for cross-attention, and a context module with context states, if any.

    The slots are for cross-attention and for attention to the context states.
    """

    layers: Sequence[DecoderLayer]
    memory_MD: Tensor
    context: "ContextModule | None" = None
    rows_CD: Tensor | None = None
    slots: tuple[Slot, Slot] = ("cross", "tgt_before")

    def run(self, hidden_ND: Tensor, layout: DeviceLayout, norm: Callable[[Tensor], Tensor]) -> Tensor:
        """Return states for embedded target tokens, [N, D] → [N, D]. `norm` follows the last layer."""
        context, (slot, rows_slot) = self.context, self.slots
        groupings = partial(layout.grouping, "decoder"), partial(layout.grouping, slot)
        reader = PackedReader(layout, "tgt", self.rows_CD, rows_slot)
        for number, layer in enumerate(self.layers):
            between = None
            if context is not None:
                between = partial(context.in_decoder, number, reader=reader)
            hidden_ND = call_layer(layer, hidden_ND, self.memory_MD, *groupings, between)
        hidden_ND = norm(hidden_ND)
        if context is None:
            return hidden_ND
        return context.after_decoder(hidden_ND, reader)


class ContextModule(nn.Module):
    """The part that a document model adds to a sentence Transformer: one method per place, without effect by default.

    Its parameters are those that the sentence model lacks. A sentence without context is computed as by the sentence
    model. Batches without context (`DeviceLayout.reads_context`) do not reach the module.
    """

    has_context_states: ClassVar[bool] = False
    """True if `before_encoder` returns states."""

    def before_encoder(self, source: SourceBatch) -> Tensor:
        """Return context states, [C, D], for all sentences in order, if `has_context_states`."""
        raise NotImplementedError

    def in_encoder(self, number: int, hidden_SD: Tensor, reader: ContextReader) -> Tensor:
        """Between self-attention and feed-forward in encoder layer `number`."""
        return hidden_SD

    def after_encoder(self, source: SourceBatch, encoded_SD: Tensor) -> Tensor:
        """Return the states that the decoder reads, [S, D], from the encoder output."""
        return encoded_SD

    def in_decoder(self, number: int, hidden_ND: Tensor, reader: ContextReader) -> Tensor:
        """Between self-attention and cross-attention in decoder layer `number`."""
        return hidden_ND

    def after_decoder(self, hidden_ND: Tensor, reader: ContextReader) -> Tensor:
        """Return the states that the softmax reads, [N, D], from the decoder output."""
        return hidden_ND

    def decode_again(self, model: Transformer, target: TargetBatch) -> Tensor:
        """Return the states that the softmax reads, [N, D], for a kind that drafts."""
        raise NotImplementedError

    def context_attentions(self) -> list[MultiHeadAttention]:
        """Return the decoder's attentions to context states."""
        return []

    def previous_attentions(self) -> list[MultiHeadAttention]:
        """Return the decoder's attentions to separate previous sentences."""
        return []

    def zero_init_outputs(self) -> None:
        """Initialize so that the model computes like its sentence model (trait `can_start_without_effect`).

        By default nothing is changed. This suits modules without effect at first, such as the global context encoder
        without its layer norm.
        """
