"""The Transformer over packed tokens that all systems of this package are.

Shape letters: N packed target tokens, S packed source tokens, D width, V vocabulary, T positions.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docmt.models.attention.layout import AttentionLayout, CompiledLayout
from docmt.models.attention.multi_head import Attention
from docmt.models.attention.patterns import Side
from docmt.models.layers import ENCODER_LAYERS, DecoderLayer, EncoderLayer
from docmt.models.numerics import call_layer, dropout, product_dtype
from docmt.models.settings import ModelSettings, Positions
from docmt.models.systems.cadec import SecondDecoder
from docmt.models.systems.context_module import ContextModule, DecoderPass, PackedReader, SourceBatch, TargetBatch
from docmt.models.systems.doct import DocumentContext
from docmt.models.systems.global_context import ContextEncoder
from docmt.models.systems.han import EncoderHan, JointHan
from docmt.models.systems.san import SelectiveContext
from docmt.text.vocabulary import BOS, N_SPECIALS

CONTEXT_MODULES: dict[str, type[ContextModule]] = {
    "global": ContextEncoder,
    "doct": DocumentContext,
    "han_encoder": EncoderHan,
    "han": JointHan,
    "san": SelectiveContext,
    "cadec": SecondDecoder,
}


class Inputs(nn.Module):
    """Positions and norm of one side; without parameters, unless the settings ask for learned vectors or a norm.

    The first `n_sentences` sentences of an instance have a learned vector each, which is added to all of their words.
    """

    def __init__(self, settings: ModelSettings, *, n_sentences: int | None = None) -> None:
        super().__init__()
        form, self.width = settings.form, settings.width
        self.offset = form.position_offset
        self.positions: nn.Embedding | None = None
        if form.learned_positions is not None:
            self.positions = nn.Embedding(form.learned_positions, settings.width)
            nn.init.normal_(self.positions.weight, std=settings.width**-0.5)
        self.sentences: nn.Embedding | None = None
        if n_sentences is not None:
            self.sentences = nn.Embedding(n_sentences, settings.width)
            nn.init.normal_(self.sentences.weight, std=settings.width**-0.5)
        self.norm = nn.LayerNorm(settings.width) if form.embedding_norm else nn.Identity()

    def forward(
        self, embedded_ND: Tensor, positions_N: Tensor, table_TD: Tensor, sentences_N: Tensor | None = None
    ) -> Tensor:
        """Add the vectors of positions, and of sentences if they have any, and norm.

        Both are given by number; `table_TD` is `table` or a longer one. Sentences without a vector share the last one.
        """
        # A search can write more words than there are learned positions: all further ones share the last vector.
        numbers_N = positions_N + self.offset if self.offset else positions_N
        if self.positions is not None:
            numbers_N = numbers_N.clamp(max=len(table_TD) - 1)
        hidden_ND = embedded_ND + table_TD[numbers_N].to(embedded_ND.dtype)
        if self.sentences is not None and sentences_N is not None:
            hidden_ND = hidden_ND + self.sentences(sentences_N.clamp(max=self.sentences.num_embeddings - 1))
        return self.norm(hidden_ND)

    def table(self, n_positions: int, device: torch.device) -> Tensor:
        """The vectors of at least `n_positions` positions, from number 0; of learned ones, all that there are."""
        if self.positions is not None:
            return self.positions.weight
        return sinusoids(n_positions + self.offset, self.width, device=device)


class Transformer(nn.Module):
    """Encoder and decoder with one shared table of embeddings; by default post-norm, with sinusoidal positions.

    The settings say what each attention sees, so the sentence Transformer, the document Transformer, concatenation,
    G-Transformer with its ablations and RST-Transformer are all this class. With a context module it is the model of
    cross-task pre-training or one of several baselines, which reads a document or sentences, as the layout says.
    """

    def __init__(self, settings: ModelSettings, n_symbols: int, n_specials: int = N_SPECIALS) -> None:
        """A model of `n_symbols` symbols, of which the first `n_specials` are not words."""
        super().__init__()
        self.settings, self.n_specials = settings, n_specials
        self.embedding = nn.Embedding(n_symbols, settings.width)
        # With this spread and the factor √D in `_add_positions`, embeddings have unit variance, as in fairseq.
        nn.init.normal_(self.embedding.weight, std=settings.width**-0.5)
        self.src_inputs = Inputs(settings, n_sentences=settings.form.learned_sentences)
        self.tgt_inputs = Inputs(settings)
        self.output_bias = nn.Parameter(torch.zeros(n_symbols)) if settings.form.output_bias else None
        n, m = settings.encoder_layers, settings.decoder_layers
        patterns = [settings.encoder_attention.pattern(i, n) for i in range(n)]
        self.encoder = nn.ModuleList(
            ENCODER_LAYERS.get(pattern, EncoderLayer)(settings, pattern=pattern) for pattern in patterns
        )
        self.context: ContextModule | None = None
        if settings.context is not None:
            self.context = CONTEXT_MODULES[settings.context.kind](settings)
        self.decoder = nn.ModuleList(
            DecoderLayer(
                settings,
                pattern=settings.decoder_attention.pattern(i, m),
                cross_pattern=settings.cross_attention.pattern(i, m),
            )
            for i in range(m)
        )
        self.encoder_norm, self.decoder_norm = (
            nn.LayerNorm(settings.width) if settings.form.final_norm else nn.Identity() for _ in range(2)
        )

    def forward(self, src_tokens_S: Tensor, tgt_inputs_N: Tensor, layout: AttentionLayout | CompiledLayout) -> Tensor:
        """Decoder states [N, D] of the target inputs, teacher-forced."""
        return self.decode(tgt_inputs_N, self.encode(src_tokens_S, layout), layout)

    def encode(self, src_tokens_S: Tensor, layout: AttentionLayout | CompiledLayout) -> Tensor:
        """Encoder states [S, D] of int64 token ids [S], and after them the rows of a context module that has rows."""
        hidden_SD = embedded_SD = self._embed(src_tokens_S, layout, "src")
        source = SourceBatch(src_tokens_S, embedded_SD, layout, self.encoder_layers, self._embed)
        context = self.context if layout.reads_context else None
        rows_CD = context.before_encoder(source) if context is not None and context.reads_rows else None
        reader = PackedReader(layout, "src", src_tokens_S.device, rows_CD)
        for number, layer in enumerate(self.encoder):
            between = None if context is None else partial(context.in_encoder, number, reader=reader)
            hidden_SD = call_layer(layer, hidden_SD, partial(layout.grouping, "encoder"), between)
        hidden_SD = self.encoder_norm(hidden_SD)
        if context is not None:
            hidden_SD = context.after_encoder(source, hidden_SD)
        return hidden_SD if rows_CD is None else torch.cat((hidden_SD, rows_CD))

    def decode(self, tgt_inputs_N: Tensor, memory_SD: Tensor, layout: AttentionLayout | CompiledLayout) -> Tensor:
        """Decoder states [N, D] of int64 token ids [N], given what `encode` returns."""
        memory_SD = memory_SD.to(product_dtype(memory_SD))  # once for all layers
        embedded_ND = self._embed(tgt_inputs_N, layout, "tgt")
        states_ND = self.run(embedded_ND, self.first_pass(memory_SD, layout), layout)
        if self.context is None or not self.settings.drafts or not layout.reads_context:
            return states_ND
        return self.context.decode_again(self, TargetBatch(tgt_inputs_N, embedded_ND, states_ND, memory_SD, layout))

    def decode_once(self, tgt_inputs_N: Tensor, memory_SD: Tensor, layout: AttentionLayout | CompiledLayout) -> Tensor:
        """As `decode`, where a model drafts, by its sentence model."""
        return self.run(self._embed(tgt_inputs_N, layout, "tgt"), self.first_pass(memory_SD, layout), layout)

    def run(self, hidden_ND: Tensor, stack: DecoderPass, layout: AttentionLayout | CompiledLayout) -> Tensor:
        """Decoder layers over embedded target tokens, [N, D] → [N, D]."""
        context, (slot, rows_slot) = stack.context, stack.slots
        groupings = partial(layout.grouping, "decoder"), partial(layout.grouping, slot)
        reader = PackedReader(layout, "tgt", hidden_ND.device, stack.rows_CD, rows_slot)
        for number, layer in enumerate(stack.layers):
            between = None if context is None else partial(context.in_decoder, number, reader=reader)
            hidden_ND = call_layer(layer, hidden_ND, stack.memory_MD, *groupings, between)
        hidden_ND = self.decoder_norm(hidden_ND)
        return hidden_ND if context is None else context.after_decoder(hidden_ND, reader)

    def first_pass(self, memory_SD: Tensor, layout: AttentionLayout | CompiledLayout) -> DecoderPass:
        """The decoder, with the context module unless that is for a second pass, given what `encode` returns."""
        context = self.context if layout.reads_context and not self.settings.drafts else None
        if context is None or not context.reads_rows:
            return DecoderPass(self.decoder_layers, memory_SD, context)
        n_rows = len(layout.index("before", "row", memory_SD.device))
        encoded_SD, rows_CD = memory_SD.split((len(memory_SD) - n_rows, n_rows))
        return DecoderPass(self.decoder_layers, encoded_SD, context, rows_CD)

    def train(self, mode: bool = True) -> Self:
        """As `nn.Module.train`, but a sentence model that drafts computes as in decoding: without dropout."""
        super().train(mode)
        if self.settings.drafts:
            for part in (self.src_inputs, self.tgt_inputs, self.encoder, self.decoder):
                part.eval()
        return self

    def _embed(
        self, tokens_N: Tensor, layout: AttentionLayout | CompiledLayout, side: Side, *, within: Positions | None = None
    ) -> Tensor:
        inputs = self.tgt_inputs if side == "tgt" else self.src_inputs
        if isinstance(layout, CompiledLayout):
            table_TD = layout.table_TD if inputs.positions is None else inputs.positions.weight
        else:
            n_positions = layout.n_positions(side, within=within)
            self.settings.form.check_positions(n_positions)
            table_TD = inputs.table(n_positions, tokens_N.device)
        positions_N = layout.positions(side, tokens_N.device, within=within)
        has_numbers = inputs.sentences is not None and side == "src"
        numbers_N = layout.index("src", "number", tokens_N.device) if has_numbers else None
        return self._add_positions(inputs, tokens_N, positions_N, table_TD, numbers_N)

    def embed(self, tokens_N: Tensor, positions_N: Tensor, *, n_positions: int) -> Tensor:
        """Scaled embeddings of target tokens plus positions, with dropout; [N, D].

        The positions are below `n_positions`; reading the highest one back would make a GPU wait.
        """
        return self._add_positions(
            self.tgt_inputs, tokens_N, positions_N, self.tgt_inputs.table(n_positions, tokens_N.device)
        )

    def _add_positions(
        self, inputs: Inputs, tokens_N: Tensor, positions_N: Tensor, table_TD: Tensor, numbers_N: Tensor | None = None
    ) -> Tensor:
        hidden_ND = self.embedding(tokens_N) * math.sqrt(self.settings.width)
        if self.settings.form.zero_start:
            hidden_ND = hidden_ND.masked_fill((tokens_N == BOS)[:, None], 0)
        return dropout(inputs(hidden_ND, positions_N, table_TD, numbers_N), self.settings.dropout, inputs.training)

    @property
    def encoder_layers(self) -> list[EncoderLayer]:
        return cast(list[EncoderLayer], list(self.encoder))  # a ModuleList does not know their type

    @property
    def decoder_layers(self) -> list[DecoderLayer]:
        return cast(list[DecoderLayer], list(self.decoder))

    def attentions(self) -> Iterator[tuple[str, Attention]]:
        """Every attention of encoder and decoder with its name."""
        for i, layer in enumerate(self.encoder_layers):
            yield f"encoder.{i}.self_attention", layer.self_attention
        for i, layer in enumerate(self.decoder_layers):
            yield f"decoder.{i}.self_attention", layer.self_attention
            yield f"decoder.{i}.cross_attention", layer.cross_attention

    def logits(self, hidden_ND: Tensor) -> Tensor:
        """Scores of all symbols, [N, V], with the shared table."""
        return F.linear(hidden_ND, self.embedding.weight, self.output_bias)


_tables: dict[tuple[int, torch.device], Tensor] = {}


def sinusoids(n_positions: int, width: int, *, device: torch.device | str = "cpu") -> Tensor:
    """Sinusoidal positions, float32 [at least n_positions, width]: sines in the first half, cosines in the second.

    (Vaswani et al. 2017, §3.5, in the order that fairseq uses.) The table is cached and grows by doubling.
    """
    key = (width, torch.device(device))
    table = _tables.get(key)
    if table is None or len(table) < n_positions:
        # The next power of two: a search that grows word by word seldom computes a new table.
        length = max(1024, 1 << (n_positions - 1).bit_length() if n_positions > 1 else 1)
        half = width // 2
        rates = torch.exp(torch.arange(half) * -(math.log(10000) / max(half - 1, 1)))
        angles = torch.arange(length)[:, None] * rates
        table = _tables[key] = torch.cat((angles.sin(), angles.cos()), dim=1).to(device)
    return table
