"""Floating-point operations in a training step."""

from docmt.models.attention.multi_head import Attention, FusedAttention, parts
from docmt.models.attention.patterns import Slot
from docmt.models.batch import Batch
from docmt.models.systems.transformer import Transformer


def training_flops(model: Transformer, batch: Batch) -> float:
    """Return the floating-point operations in the matrix products of one ragged training step.

    The backward pass needs twice the operations of the forward pass.
    """
    width = model.settings.width
    n_src, n_tgt = len(batch.src_tokens_S), len(batch.tgt_inputs_N)

    def attention(module: Attention, slot: Slot, n: int, m: int) -> float:
        has_gate = isinstance(module, FusedAttention) and module.has_gate
        total = 0.0
        if has_gate:
            total = 4.0 * n * width * width
        for part in parts(module):
            grouping = batch.layout.grouping(slot, part.pattern)
            pairs = float((grouping.query_lengths_G * grouping.key_lengths_G).sum())
            total += 4 * part.out.in_features * ((n + m) * width + pairs)
        return total

    total = 2.0 * n_tgt * width * model.embedding.num_embeddings
    total += 4 * (n_src * len(model.encoder) + n_tgt * len(model.decoder)) * width * model.settings.feed_forward_width
    for layer in model.encoder_layers:
        total += attention(layer.self_attention, "encoder", n_src, n_src)
    for layer in model.decoder_layers:
        total += attention(layer.self_attention, "decoder", n_tgt, n_tgt)
        total += attention(layer.cross_attention, "cross", n_tgt, n_src)
    return 3 * total
