"""All context modules for sentence Transformers, with the facts that settings need without importing torch.

A pattern restricts an attention in the model (attention/patterns.py). A context module adds attentions that the
sentence model does not have. A new module is a subclass of `ContextModule`, with a row here and a row in
`CONTEXT_MODULES` in context_transformer.py.
"""

from dataclasses import dataclass

from docmt.models.attention.patterns import IndexKind, Side, Slot


@dataclass(frozen=True)
class ContextTraits:
    """Traits of a kind of context module.

    Attributes:
        settings: keys of `ContextSettings` for this kind. The others may not be set.
        attentions: slot and pattern of the groupings that it needs from a layout.
        indexes: side and kind of the indexes that it needs from a layout.
        sentences: default number of previous sentences, or 0 if its range is not limited by this.
        sees_target: true if a target sentence depends on others.
        drafts: true for a second decoder, for which the sentence model drafts a translation.
        can_start_without_effect: true if the module can be initialized so that the model equals its sentence model.
    """

    settings: tuple[str, ...] = ()
    attentions: tuple[tuple[Slot, str], ...] = ()
    indexes: tuple[tuple[Side, IndexKind], ...] = ()
    sentences: int = 0
    sees_target: bool = False
    drafts: bool = False
    can_start_without_effect: bool = False


CONTEXTS: dict[str, ContextTraits] = {
    "global": ContextTraits(
        settings=("layers", "positions", "norm"),
        attentions=(("context", "global"),),
        indexes=(("src", "in_batch"),),
        can_start_without_effect=True,
    ),
    "doct": ContextTraits(
        settings=("sentences",),
        attentions=(("before", "group"), ("src_before", "group"), ("tgt_before", "group")),
        indexes=(("before", "row"), ("before", "sentence"), ("src", "number"), ("tgt", "number")),
        sentences=2,
    ),
    "han_encoder": ContextTraits(
        settings=("sentences",), attentions=(("encoder", "each_before"),), indexes=(("src", "number"),), sentences=3
    ),
    "han": ContextTraits(
        settings=("sentences",),
        attentions=(("encoder", "each_before"), ("decoder", "each_before")),
        indexes=(("src", "number"), ("tgt", "number")),
        sentences=3,
        sees_target=True,
    ),
    "san": ContextTraits(settings=("future",), indexes=(("src", "number"), ("src", "is_word"), ("src", "padded_row"))),
    "cadec": ContextTraits(
        settings=("sentences",),
        attentions=(("near", "near"), ("drafted", "drafts")),
        indexes=(("tgt", "number"), ("tgt", "in_batch")),
        sentences=3,
        sees_target=True,
        drafts=True,
    ),
}
