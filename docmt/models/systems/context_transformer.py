"""A sentence Transformer with a context module, and the choice of a model class from settings.

`ContextTransformer` calls the module (context_module.py) at several places around and inside encoder and decoder. A
module overrides some of these methods. The modules of cross-task pre-training, HAN and SAN follow the encoder, and the
joint HAN also follows the decoder. DocT is in every layer. CADec is a second decoder.

Shape letters: N packed target tokens, S packed source tokens, C context states, D width.
"""

from functools import partial
from typing import Self

import torch
from torch import Tensor, nn
from typing_extensions import override

from docmt.models.attention.layout import AttentionLayout, DeviceLayout
from docmt.models.numerics import call_layer, product_dtype
from docmt.models.settings import ModelSettings
from docmt.models.systems.cadec import SecondDecoder
from docmt.models.systems.context_module import ContextModule, DecoderPass, PackedReader, SourceBatch, TargetBatch
from docmt.models.systems.doct import DocumentContext
from docmt.models.systems.global_context import ContextEncoder
from docmt.models.systems.han import EncoderHan, JointHan
from docmt.models.systems.san import SelectiveContext
from docmt.models.systems.transformer import Transformer
from docmt.text.vocabulary import N_SPECIALS

CONTEXT_MODULES: dict[str, type[ContextModule]] = {
    "global": ContextEncoder,
    "doct": DocumentContext,
    "han_encoder": EncoderHan,
    "han": JointHan,
    "san": SelectiveContext,
    "cadec": SecondDecoder,
}


class ContextTransformer(Transformer):
    """A sentence Transformer with a context module: the cross-task pre-training model, or one of several baselines.

    It reads documents, or sentences without the module, depending on the layout.
    """

    context: ContextModule

    @override
    def _build_decoder(self) -> nn.ModuleList:
        # Before the decoder: optimizers and random numbers follow the order of modules.
        assert self.settings.context is not None
        self.context = CONTEXT_MODULES[self.settings.context.kind](self.settings)
        return super()._build_decoder()

    @override
    def encode(self, src_tokens_S: Tensor, layout: DeviceLayout) -> Tensor:
        """Return encoder states [S, D] for int64 token ids [S], followed by context states if the module has any."""
        if not layout.reads_context:
            return super().encode(src_tokens_S, layout)
        hidden_SD = embedded_SD = self._embed(src_tokens_S, layout, "src")
        source = SourceBatch(src_tokens_S, embedded_SD, layout, self.encoder_layers, self._embed)
        rows_CD = None
        if self.context.has_context_states:
            rows_CD = self.context.before_encoder(source)
        reader = PackedReader(layout, "src", rows_CD)
        for number, layer in enumerate(self.encoder):
            between = partial(self.context.in_encoder, number, reader=reader)
            hidden_SD = call_layer(layer, hidden_SD, partial(layout.grouping, "encoder"), between)
        hidden_SD = self.context.after_encoder(source, self.encoder_norm(hidden_SD))
        if rows_CD is None:
            return hidden_SD
        return torch.cat((hidden_SD, rows_CD))

    @override
    def decode(self, tgt_inputs_N: Tensor, memory_SD: Tensor, layout: DeviceLayout) -> Tensor:
        if not layout.reads_context:
            return super().decode(tgt_inputs_N, memory_SD, layout)
        memory_SD = memory_SD.to(product_dtype(memory_SD))  # once for all layers
        embedded_ND = self._embed(tgt_inputs_N, layout, "tgt")
        states_ND = self.first_pass(memory_SD, layout).run(embedded_ND, layout, self.decoder_norm)
        if not self.settings.drafts:
            return states_ND
        target = TargetBatch(tgt_inputs_N, embedded_ND, states_ND, memory_SD, layout, super().decode)
        return self.context.decode_again(self, target)

    def first_pass(self, memory_SD: Tensor, layout: AttentionLayout | DeviceLayout) -> DecoderPass:
        """Return the decoder pass with the context module, or without it if the module is for a second pass.

        `memory_SD` comes from `encode`.
        """
        if not layout.reads_context or self.settings.drafts:
            return DecoderPass(self.decoder_layers, memory_SD)
        if not self.context.has_context_states:
            return DecoderPass(self.decoder_layers, memory_SD, self.context)
        n_rows = len(layout.index("before", "row"))
        encoded_SD, rows_CD = memory_SD.split((len(memory_SD) - n_rows, n_rows))
        return DecoderPass(self.decoder_layers, encoded_SD, self.context, rows_CD)

    @override
    def train(self, mode: bool = True) -> Self:
        """As `nn.Module.train`, but a sentence model that drafts computes as in decoding, without dropout."""
        super().train(mode)
        if self.settings.drafts:
            for part in (self.src_inputs, self.tgt_inputs, self.encoder, self.decoder):
                part.eval()
        return self


def build_transformer(settings: ModelSettings, n_symbols: int, n_specials: int = N_SPECIALS) -> Transformer:
    """Return a new model for the settings. Arguments as `Transformer`."""
    kind = ContextTransformer
    if settings.context is None:
        kind = Transformer
    return kind(settings, n_symbols, n_specials)
