"""Named sizes and architectures: plain values for `ModelSettings`, merged under a system's own overrides.

Importing this module does not import torch.
"""

from typing import Any

MARIAN: dict[str, Any] = {
    "form": {"activation": "swish", "output_bias": True, "zero_start": True},
    "marks": {"src_before": [], "src_after": ["</s>"], "tgt_before": ["<s>"]},
}
MBART: dict[str, Any] = {
    "form": {
        "activation": "gelu",
        "norm": "pre",
        "embedding_norm": True,
        "final_norm": True,
        "learned_positions": 1024,
        "output_bias": True,
    },
    "marks": {"src_before": [], "src_after": ["</s>", "{src}"], "tgt_before": ["{tgt}"]},
}


def _size(layers: int, **others: Any) -> dict[str, Any]:
    return {"encoder_layers": layers, "decoder_layers": layers, **others}


SIZES: dict[str, dict[str, Any]] = {
    "tiny": _size(3, width=128, heads=4, feed_forward_width=256, dropout=0.1),
    "small": _size(4, width=256, heads=4, feed_forward_width=1024, dropout=0.3),
    "base": _size(6, width=512, heads=8, feed_forward_width=2048, dropout=0.3),
    "big": _size(6, width=1024, heads=16, feed_forward_width=4096, dropout=0.3),
    "large": _size(12, width=1024, heads=16, feed_forward_width=4096, dropout=0.3),
    "opus_mt": _size(6, width=512, heads=8, feed_forward_width=2048, dropout=0.1, positions="sentence", **MARIAN),
    "mbart": _size(12, width=1024, heads=16, feed_forward_width=4096, dropout=0.1, positions="sentence", **MBART),
}
"""Sizes (G-Transformer, §2). `tiny` and `small` are for CPUs. `opus_mt` and `mbart` are the sizes of published models,
with their form and boundary tokens (docs/pretrained.md).
"""

GLOBAL = {"lower": "global", "upper": "global"}
GROUP = {"lower": "group", "upper": "group"}
WINDOW = {"lower": "window", "upper": "window"}
COMBINED = {"lower": "group", "upper": "combined"}
LONG_SHORT = {"lower": "long_short", "upper": "long_short"}
SEGMENTS_THEN_GROUP = {"lower": "segments", "upper": "group", "upper_layers": 1}
GROUP_THEN_DISTANCES = {"lower": "group", "upper": "distances", "upper_layers": 1}
MEMORY = {"lower": "memory", "upper": "memory"}
GROUP_THEN_GLOBAL = {"lower": "group", "upper": "global"}


def _attentions(encoder: dict, decoder: dict, cross: dict, **others: Any) -> dict[str, Any]:
    return {"encoder_attention": encoder, "decoder_attention": decoder, "cross_attention": cross, **others}


ARCHITECTURES: dict[str, dict[str, Any]] = {
    # Baselines.
    "sentence_transformer": _attentions(GROUP, GROUP, GROUP, positions="sentence"),
    "document_transformer": _attentions(GLOBAL, GLOBAL, GLOBAL, target_stream="free"),
    # As many target as source sentences, so that scores over sentences exist (RST-Transformer, Table 3).
    "document_transformer_aligned": _attentions(GLOBAL, GLOBAL, GLOBAL),
    "concatenation": _attentions(WINDOW, WINDOW, WINDOW),
    "lstm_transformer": _attentions(LONG_SHORT, LONG_SHORT, LONG_SHORT),
    "flat_transformer": _attentions(SEGMENTS_THEN_GROUP, GROUP, GROUP, positions="sentence", window_sentences=1),
    "hybrid_context": _attentions(
        GROUP_THEN_DISTANCES,
        MEMORY,
        GROUP,
        positions="sentence",
        form={"norm": "pre", "final_norm": True, "learned_sentences": 20},
    ),
    # G-Transformer and its ablations: Tables 3, 5 and 6 of the paper.
    "g_transformer": _attentions(COMBINED, COMBINED, COMBINED),
    "g_transformer_no_target_context": _attentions(COMBINED, GROUP, COMBINED),
    # Its words still read earlier source sentences, through the earlier words that translate them.
    "g_transformer_no_source_context": _attentions(GROUP, COMBINED, GROUP),
    "g_transformer_no_context": _attentions(GROUP, GROUP, GROUP),
    "g_transformer_no_language_locality": _attentions(GLOBAL, GLOBAL, COMBINED),
    "g_transformer_no_locality": _attentions(GLOBAL, GLOBAL, GLOBAL, target_stream="free"),
    "g_transformer_only_group": _attentions(GROUP, GROUP, GROUP),
    "g_transformer_only_global": _attentions(GROUP_THEN_GLOBAL, GROUP_THEN_GLOBAL, GROUP_THEN_GLOBAL),
    # RST-Transformer, §3.3: two RST layers (N_b) above the sentence layers (N_a).
    **{
        name: _attentions(*3 * [{"lower": "group", "upper": name}])
        for name in ("rst_serial", "rst_parallel", "rst_mix")
    },
    # Cross-task pre-training, §2.2: a sentence Transformer with a global context encoder and a gate.
    "global_context": _attentions(GROUP, GROUP, GROUP, positions="sentence", context={}),
    # Systems that the papers compare with: sentence Transformers with a module that reads context.
    **{
        kind: _attentions(GROUP, GROUP, GROUP, positions="sentence", context={"kind": kind})
        for kind in ("doct", "han_encoder", "han", "san", "cadec")
    },
}
"""Attention patterns by architecture.

`no_context` removes the source context after the target context, as in Table 3. It and `only_group` are the same model
under the names in the two tables. `no_locality` is the document Transformer.
"""
