"""All modules that read context beside a sentence Transformer: what settings must know without importing torch.

A pattern says what an attention of the model sees (attention/patterns.py); a context module adds attentions that the
sentence model does not have. A new one is a subclass of `ContextModule`, with a row here and a row of `CONTEXT_MODULES`
in context_transformer.py.
"""

from dataclasses import dataclass

from docmt.models.attention.patterns import Index, Side, Slot


@dataclass(frozen=True)
class ContextTraits:
    """Traits of a kind of context module.

    Attributes:
        settings: keys of `ContextSettings` for this kind; the others may not be set.
        attentions: slot and pattern of each grouping that it needs of a layout.
        indexes: side and kind of each index that it needs of a layout.
        sentences: how many previous sentences it reads by default; 0 if that is not what limits it.
        sees_target: whether a target sentence depends on others.
        drafts: whether it is a second decoder, for which the sentence model drafts a translation.
        can_be_silent: whether it can start so that the model computes as the sentence model.
    """

    settings: tuple[str, ...] = ()
    attentions: tuple[tuple[Slot, str], ...] = ()
    indexes: tuple[tuple[Side, Index], ...] = ()
    sentences: int = 0
    sees_target: bool = False
    drafts: bool = False
    can_be_silent: bool = False


CONTEXTS: dict[str, ContextTraits] = {
    "global": ContextTraits(
        settings=("layers", "positions", "norm"),
        attentions=(("context", "global"),),
        indexes=(("src", "in_batch"),),
        can_be_silent=True,
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
