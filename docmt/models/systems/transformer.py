"""The Transformer over packed tokens: the sentence, document, G- and RST-Transformer.

These models differ in the attention patterns that the settings define per layer. The sentence Transformer has the
pattern `group` everywhere: a token attends to its own sentence (G-Transformer, Eq. 6–8). The document Transformer has
`global`: a token attends to the whole instance (Eq. 4–5). G-Transformer (Bao et al. 2021) has `group` in its lower
layers. Its upper layers have both attentions and a gate (`combined`, Eq. 10). RST-Transformer also has `group` in its
lower layers (SentAttn, its Eq. 4–5). Its upper layers have a second attention, to EDUs that are related in the
discourse tree (`rst`, Eq. 6–7): after the first (`rst_serial`, Eq. 8–10), parallel to it with a gate (`rst_parallel`,
Eq. 11–13), or after it with a gate between both outputs (`rst_mix`, Eq. 8–10 and 12–13).

Shape letters: N packed target tokens, S packed source tokens, D width, V vocabulary, T positions.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docmt.models.attention.kernels import Kernel, kernel_for
from docmt.models.attention.layout import AttentionLayout, DeviceLayout
from docmt.models.attention.multi_head import Attention, MultiHeadAttention
from docmt.models.attention.patterns import Side
from docmt.models.buffers import move
from docmt.models.layers import ENCODER_LAYERS, DecoderLayer, EncoderLayer
from docmt.models.numerics import call_layer, dropout, product_dtype
from docmt.models.settings import ModelSettings, Positions
from docmt.text.vocabulary import BOS, N_SPECIALS


class PositionEmbedding(nn.Module):
    """Positions and norm on one side. Without parameters, unless the settings ask for learned vectors or a norm.

    The first `n_sentences` sentences in an instance have learned vectors, added to all their words.
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
        """Add the vectors for positions, and for sentences if there are any, and normalize. [N, D].

        Positions and sentences are numbers. `table_TD` comes from `table`, or is longer. Sentences without a vector
        share the last one.
        """
        # A search can write more words than there are learned positions: all further ones share the last vector.
        numbers_N = positions_N
        if self.offset:
            numbers_N = positions_N + self.offset
        if self.positions is not None:
            numbers_N = numbers_N.clamp(max=len(table_TD) - 1)
        hidden_ND = embedded_ND + table_TD[numbers_N].to(embedded_ND.dtype)
        if self.sentences is not None and sentences_N is not None:
            hidden_ND = hidden_ND + self.sentences(sentences_N.clamp(max=self.sentences.num_embeddings - 1))
        return self.norm(hidden_ND)

    def table(self, n_positions: int, device: torch.device) -> Tensor:
        """Return vectors for at least `n_positions` positions from 0. For learned positions, return all."""
        if self.positions is not None:
            return self.positions.weight
        return sinusoids(n_positions + self.offset, self.width, device=device)


class Transformer(nn.Module):
    """Encoder and decoder with a shared embedding table. By default post-norm, with sinusoidal positions.

    `build_transformer` in context_transformer.py makes models for all settings, including context modules.
    """

    def __init__(self, settings: ModelSettings, n_symbols: int, n_specials: int = N_SPECIALS) -> None:
        """A model with `n_symbols` symbols. The first `n_specials` are not words."""
        super().__init__()
        self.settings, self.n_specials = settings, n_specials
        self.embedding = nn.Embedding(n_symbols, settings.width)
        # With this spread and the factor √D in `_add_positions`, embeddings have unit variance, as in fairseq.
        nn.init.normal_(self.embedding.weight, std=settings.width**-0.5)
        self.src_inputs = PositionEmbedding(settings, n_sentences=settings.form.learned_sentences)
        self.tgt_inputs = PositionEmbedding(settings)
        self.output_bias = nn.Parameter(torch.zeros(n_symbols)) if settings.form.output_bias else None
        n = settings.encoder_layers
        patterns = [settings.encoder_attention.pattern(i, n) for i in range(n)]
        self.encoder = nn.ModuleList(
            ENCODER_LAYERS.get(pattern, EncoderLayer)(settings, pattern=pattern) for pattern in patterns
        )
        self.decoder = self._build_decoder()
        self.encoder_norm, self.decoder_norm = (
            nn.LayerNorm(settings.width) if settings.form.final_norm else nn.Identity() for _ in range(2)
        )

    def _build_decoder(self) -> nn.ModuleList:
        settings, n = self.settings, self.settings.decoder_layers
        return nn.ModuleList(
            DecoderLayer(
                settings,
                pattern=settings.decoder_attention.pattern(i, n),
                cross_pattern=settings.cross_attention.pattern(i, n),
            )
            for i in range(n)
        )

    def kernel(self) -> Kernel:
        """Return the attention kernel for the device and the precision of the moment."""
        table_VD = self.embedding.weight
        widths = {part.key_width for part in self.modules() if isinstance(part, MultiHeadAttention)}
        kernels = {kernel_for(table_VD.device, product_dtype(table_VD), width) for width in widths}
        return "padded" if "padded" in kernels else "varlen"

    def place(self, layout: AttentionLayout) -> DeviceLayout:
        """Return the layout as the model reads it. Raises UserError as `Batch.prepare`."""
        device_layout = DeviceLayout.of(layout, self.kernel())
        self.settings.form.check_positions(device_layout.n_positions)
        return move(device_layout, self.embedding.weight.device)

    def forward(self, src_tokens_S: Tensor, tgt_inputs_N: Tensor, layout: DeviceLayout) -> Tensor:
        """Return decoder states [N, D] for the target inputs, teacher-forced."""
        return self.decode(tgt_inputs_N, self.encode(src_tokens_S, layout), layout)

    def encode(self, src_tokens_S: Tensor, layout: DeviceLayout) -> Tensor:
        """Return encoder states [S, D] for int64 token ids [S]."""
        hidden_SD = self._embed(src_tokens_S, layout, "src")
        for layer in self.encoder:
            hidden_SD = call_layer(layer, hidden_SD, partial(layout.grouping, "encoder"))
        return self.encoder_norm(hidden_SD)

    def decode(self, tgt_inputs_N: Tensor, memory_SD: Tensor, layout: DeviceLayout) -> Tensor:
        """Return decoder states [N, D] for int64 token ids [N]. `memory_SD` comes from `encode`."""
        memory_SD = memory_SD.to(product_dtype(memory_SD))  # once for all layers
        hidden_ND = self._embed(tgt_inputs_N, layout, "tgt")
        groupings = partial(layout.grouping, "decoder"), partial(layout.grouping, "cross")
        for layer in self.decoder:
            hidden_ND = call_layer(layer, hidden_ND, memory_SD, *groupings)
        return self.decoder_norm(hidden_ND)

    def _embed(self, tokens_N: Tensor, layout: DeviceLayout, side: Side, *, within: Positions | None = None) -> Tensor:
        embedding = self.tgt_inputs if side == "tgt" else self.src_inputs
        table_TD = layout.table_TD
        if embedding.positions is not None or table_TD is None:
            table_TD = embedding.table(layout.n_positions, tokens_N.device)
        numbers_N = None
        if embedding.sentences is not None and side == "src":
            numbers_N = layout.index("src", "number")
        return self._add_positions(embedding, tokens_N, layout.positions(side, within=within), table_TD, numbers_N)

    def embed(self, tokens_N: Tensor, positions_N: Tensor, *, n_positions: int) -> Tensor:
        """Return scaled embeddings for target tokens plus positions, with dropout, [N, D].

        Positions are below `n_positions`, an argument because reading the maximum back would make a GPU wait.
        """
        return self._add_positions(
            self.tgt_inputs, tokens_N, positions_N, self.tgt_inputs.table(n_positions, tokens_N.device)
        )

    def _add_positions(
        self,
        embedding: PositionEmbedding,
        tokens_N: Tensor,
        positions_N: Tensor,
        table_TD: Tensor,
        numbers_N: Tensor | None = None,
    ) -> Tensor:
        hidden_ND = self.embedding(tokens_N) * math.sqrt(self.settings.width)
        if self.settings.form.zero_start:
            hidden_ND = hidden_ND.masked_fill((tokens_N == BOS)[:, None], 0)
        return dropout(
            embedding(hidden_ND, positions_N, table_TD, numbers_N), self.settings.dropout, embedding.training
        )

    @property
    def encoder_layers(self) -> list[EncoderLayer]:
        return cast(list[EncoderLayer], list(self.encoder))  # a ModuleList does not know their type

    @property
    def decoder_layers(self) -> list[DecoderLayer]:
        return cast(list[DecoderLayer], list(self.decoder))

    def attentions(self) -> Iterator[tuple[str, Attention]]:
        """Yield all attentions in encoder and decoder with their names."""
        for i, layer in enumerate(self.encoder_layers):
            yield f"encoder.{i}.self_attention", layer.self_attention
        for i, layer in enumerate(self.decoder_layers):
            yield f"decoder.{i}.self_attention", layer.self_attention
            yield f"decoder.{i}.cross_attention", layer.cross_attention

    def logits(self, hidden_ND: Tensor) -> Tensor:
        """Return scores for all symbols, [N, V], with the shared embedding matrix."""
        return F.linear(hidden_ND, self.embedding.weight, self.output_bias)


_tables: dict[tuple[int, torch.device], Tensor] = {}


def sinusoids(n_positions: int, width: int, *, device: torch.device | str = "cpu") -> Tensor:
    """Return sinusoidal positions, float32 [at least n_positions, width]: sines, then cosines.

    Vaswani et al. 2017, §3.5, in fairseq's order. The table is cached and grows by doubling.
    """
    key = (width, torch.device(device))
    table = _tables.get(key)
    if table is None or len(table) < n_positions:
        # The next power of two: a search that grows word by word seldom computes a new table.
        length = max(1024, 1 << (n_positions - 1).bit_length())
        half = width // 2
        rates = torch.exp(torch.arange(half) * -(math.log(10000) / max(half - 1, 1)))
        angles = torch.arange(length)[:, None] * rates
        table = _tables[key] = torch.cat((angles.sin(), angles.cos()), dim=1).to(device)
    return table
