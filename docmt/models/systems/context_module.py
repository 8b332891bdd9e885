"""The interface of context modules: the places of a sentence Transformer where they act, and how they read there.

`ContextTransformer` in context_transformer.py calls a module in these places; each file beside it has the module of one
paper. In training a module reads the context of all tokens at once, in a search that of the newest token of each
hypothesis: both through a `ContextReader`.

Shape letters: S packed source tokens, N packed target tokens or, step by step, rows of hypotheses; J previous
sentences, C rows of context, D width.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from typing_extensions import override

from docmt.models.attention.kernels import ragged_attention
from docmt.models.attention.layout import AttentionLayout, CompiledLayout
from docmt.models.attention.multi_head import MultiHeadAttention
from docmt.models.attention.patterns import Slot
from docmt.models.layers import DecoderLayer, EncoderLayer
from docmt.models.numerics import call_layer
from docmt.models.systems.transformer import Transformer


@dataclass(frozen=True)
class SourceBatch:
    """The source of a batch, embedded as the first layer of the encoder reads it, and the layers of the encoder.

    `embed` gives the embeddings of tokens, [N, D], for the tokens, the layout and a side, and optionally `within`, what
    positions run through.
    """

    tokens_S: Tensor
    embedded_SD: Tensor
    layout: AttentionLayout | CompiledLayout
    layers: Sequence[EncoderLayer]
    embed: Callable[..., Tensor]


@dataclass(frozen=True)
class TargetBatch:
    """The target of a batch, with the states of a first pass by the sentence model, and encoder states (the memory).

    `decode` gives the sentence model's states of target tokens, [N, D], for the tokens, encoder states and a layout.
    """

    inputs_N: Tensor
    embedded_ND: Tensor
    states_ND: Tensor
    memory_SD: Tensor
    layout: AttentionLayout | CompiledLayout
    decode: Callable[[Tensor, Tensor, AttentionLayout | CompiledLayout], Tensor]


class ContextReader(ABC):
    """Lets the tokens of one side read context, packed or one step at a time."""

    @abstractmethod
    def numbers(self) -> Tensor:
        """int64 [N], the number of each token's sentence in its document, from 0: how many there are before it."""

    @abstractmethod
    def attend_context(self, part: MultiHeadAttention, query_ND: Tensor) -> Tensor:
        """Attend to the rows of the sentence's context, see `ContextModule.before_encoder`; [N, D].

        Meaningless for sentences without any.
        """

    @abstractmethod
    def attend_previous(self, part: MultiHeadAttention, query_ND: Tensor, states_ND: Tensor, n_before: int) -> Tensor:
        """Attend to the states of each of the J = `n_before` sentences before, the nearest first; [J, N, D].

        Of these sentences, the ones that do not exist give anything finite. `states_ND` are the states of the
        tokens themselves.
        """


class PackedReader(ContextReader):
    """Reads the context of all tokens of a side side by side."""

    def __init__(
        self,
        layout: AttentionLayout | CompiledLayout,
        side: Literal["src", "tgt"],
        device: torch.device,
        rows_CD: Tensor | None,
        slot: Slot | None = None,
    ) -> None:
        self.side: Literal["src", "tgt"] = side
        self.layout, self.device, self.rows_CD = layout, device, rows_CD
        self.slot: Slot = slot or ("src_before" if side == "src" else "tgt_before")

    @override
    def numbers(self) -> Tensor:
        return self.layout.index(self.side, "number", self.device)

    @override
    def attend_context(self, part: MultiHeadAttention, query_ND: Tensor) -> Tensor:
        return part(query_ND, self.rows_CD, partial(self.layout.grouping, self.slot))

    @override
    def attend_previous(self, part: MultiHeadAttention, query_ND: Tensor, states_ND: Tensor, n_before: int) -> Tensor:
        grouping = self.layout.grouping("encoder" if self.side == "src" else "decoder", "each_before")
        query_NHK, key_NHK, value_NHK = part.project(query_ND, states_ND)
        output = ragged_attention(query_NHK.repeat(n_before, 1, 1), key_NHK, value_NHK, grouping)
        return part.out(output.flatten(1)).unflatten(0, (n_before, -1))


@dataclass(frozen=True)
class DecoderPass:
    """Decoder layers and what their cross-attention reads, with a context module and its rows, if there are any.

    The slots are those of the cross-attention and of the attention to the rows.
    """

    layers: Sequence[DecoderLayer]
    memory_MD: Tensor
    context: "ContextModule | None" = None
    rows_CD: Tensor | None = None
    slots: tuple[Slot, Slot] = ("cross", "tgt_before")

    def run(
        self, hidden_ND: Tensor, layout: AttentionLayout | CompiledLayout, norm: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """States of embedded target tokens, [N, D] → [N, D]; `norm` follows the last layer."""
        context, (slot, rows_slot) = self.context, self.slots
        groupings = partial(layout.grouping, "decoder"), partial(layout.grouping, slot)
        reader = PackedReader(layout, "tgt", hidden_ND.device, self.rows_CD, rows_slot)
        for number, layer in enumerate(self.layers):
            between = None if context is None else partial(context.in_decoder, number, reader=reader)
            hidden_ND = call_layer(layer, hidden_ND, self.memory_MD, *groupings, between)
        hidden_ND = norm(hidden_ND)
        return hidden_ND if context is None else context.after_decoder(hidden_ND, reader)


class ContextModule(nn.Module):
    """What a document model adds to a sentence Transformer: a method for each place, which by default adds nothing.

    Its parameters are those that the sentence model lacks. A sentence without context is computed as by the sentence
    model. Batches that are read without context (`AttentionLayout.reads_context`) do not come here.
    """

    has_context_states: ClassVar[bool] = False
    """Whether `before_encoder` gives rows."""

    def before_encoder(self, source: SourceBatch) -> Tensor:
        """The rows of context, [C, D], of all sentences in order, where `has_context_states` is true."""
        raise NotImplementedError

    def in_encoder(self, number: int, hidden_SD: Tensor, reader: ContextReader) -> Tensor:
        """Between self-attention and feed-forward of encoder layer `number`."""
        return hidden_SD

    def after_encoder(self, source: SourceBatch, encoded_SD: Tensor) -> Tensor:
        """What the decoder reads, [S, D], given the output of the encoder."""
        return encoded_SD

    def in_decoder(self, number: int, hidden_ND: Tensor, reader: ContextReader) -> Tensor:
        """Between self-attention and cross-attention of decoder layer `number`."""
        return hidden_ND

    def after_decoder(self, hidden_ND: Tensor, reader: ContextReader) -> Tensor:
        """What the softmax reads, [N, D], given the output of the decoder."""
        return hidden_ND

    def decode_again(self, model: Transformer, target: TargetBatch) -> Tensor:
        """What the softmax reads, [N, D], of a kind that drafts: its methods of the decoder are for this pass alone."""
        raise NotImplementedError

    def context_attentions(self) -> list[MultiHeadAttention]:
        """The attentions of the decoder to rows."""
        return []

    def previous_attentions(self) -> list[MultiHeadAttention]:
        """The attentions of the decoder to each of the sentences before."""
        return []

    def silence(self) -> None:
        """Start so that the model computes as the sentence model; only for kinds with the trait `can_be_silent`.

        Here, nothing: it is for kinds that already do, as the global context encoder without its layer norm.
        """
