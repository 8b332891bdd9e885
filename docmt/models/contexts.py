"""All modules that read context beside a sentence Transformer, in one place. Importing it does not import torch.

An attention pattern says what an attention of the model sees (patterns.py); a context module adds attentions that the
sentence model does not have. To add one, write a subclass of `ContextModule` and a row here. Other packages register
theirs as entry points, see docs/models.md.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from docmt.models.patterns import Pattern
from docmt.models.plugins import load_plugins
from docmt.settings import nearest

if TYPE_CHECKING:
    from docmt.models.context_module import ContextModule
    from docmt.models.layout import Index, Side, Slot
    from docmt.models.settings import ModelSettings


@dataclass(frozen=True)
class ContextKind:
    """A module that reads context.

    Attributes:
        class_name: `module:name` of a subclass of `ContextModule`; imported on first use.
        settings: the keys of `ContextSettings` that it reads; the others may not be set.
        attentions: slot and pattern of each grouping that it asks a layout for.
        indexes: side and kind of each index that it asks a layout for.
        patterns: patterns that only it has.
        sentences: how many previous sentences it reads, unless the settings say so; 0 if that is not what limits it.
        sees_target: whether a target sentence depends on others.
        drafts: whether it is a second decoder, for which the sentence model drafts a translation.
    """

    class_name: str
    settings: tuple[str, ...] = ()
    attentions: "tuple[tuple[Slot, str], ...]" = ()
    indexes: "tuple[tuple[Side, Index], ...]" = ()
    patterns: Mapping[str, Pattern] = field(default_factory=dict)
    sentences: int = 0
    sees_target: bool = False
    drafts: bool = False

    def build(self, settings: "ModelSettings") -> "ContextModule":
        """A new module with fresh parameters."""
        return resolve_name(self.class_name)(settings)


EACH_BEFORE = {"each_before": Pattern("docmt.models.han:see_each_before")}

CONTEXTS: dict[str, ContextKind] = {
    "global": ContextKind(
        "docmt.models.context:ContextEncoder",
        settings=("layers", "positions", "norm"),
        attentions=(("context", "global"),),
        indexes=(("src", "in_batch"),),
    ),
    "doct": ContextKind(
        "docmt.models.doct:DocumentContext",
        settings=("sentences",),
        attentions=(("before", "group"), ("src_before", "group"), ("tgt_before", "group")),
        indexes=(("before", "row"), ("before", "sentence"), ("src", "number"), ("tgt", "number")),
        sentences=2,
    ),
    "han_encoder": ContextKind(
        "docmt.models.han:EncoderHan",
        settings=("sentences",),
        attentions=(("encoder", "each_before"),),
        indexes=(("src", "number"),),
        patterns=EACH_BEFORE,
        sentences=3,
    ),
    "han": ContextKind(
        "docmt.models.han:JointHan",
        settings=("sentences",),
        attentions=(("encoder", "each_before"), ("decoder", "each_before")),
        indexes=(("src", "number"), ("tgt", "number")),
        patterns=EACH_BEFORE,
        sentences=3,
        sees_target=True,
    ),
    "san": ContextKind(
        "docmt.models.san:SelectiveContext",
        settings=("future",),
        indexes=(("src", "number"), ("src", "is_word"), ("src", "place")),
    ),
    "cadec": ContextKind(
        "docmt.models.cadec:SecondDecoder",
        settings=("sentences",),
        attentions=(("near", "near"), ("drafted", "drafts")),
        indexes=(("tgt", "number"), ("tgt", "in_batch")),
        patterns={
            "near": Pattern("docmt.models.cadec:see_sources"),
            "drafts": Pattern("docmt.models.cadec:see_drafts"),
        },
        sentences=3,
        sees_target=True,
        drafts=True,
    ),
}
"""The context modules of docmt itself."""


@functools.cache
def all_contexts() -> dict[str, ContextKind]:
    """The context modules of docmt and of installed packages. Raises UserError for packages that clash or fail."""
    return load_plugins("docmt.contexts", CONTEXTS, what="context module", types=ContextKind)


def find_context(name: str) -> ContextKind:
    """The context module of a name. Raises ValueError that names the nearest known one."""
    found = CONTEXTS.get(name) or all_contexts().get(name)
    if found is None:
        raise ValueError(f"must be a context module ({nearest(name, list(all_contexts()))})")
    return found
