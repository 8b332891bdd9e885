"""All architectures, as parameters for tests that take seconds per architecture."""

import pytest

from docmt.models.presets import ARCHITECTURES

ABLATIONS = {name for name in ARCHITECTURES if name.startswith("g_transformer_")}
"""Ablations of G-Transformer. Other architectures contain the same attentions."""
DIVERSE = ("document_transformer", "hybrid_context", "g_transformer", "rst_mix", "global_context", "han", "cadec")
"""One architecture per kind of stream, attention and context."""
TRAINED = ("g_transformer", "global_context", "cadec")
"""A model with groups, a model that trains on documents and single sentences, and a model that draws drafts."""


def slow_but(quick, among=ARCHITECTURES):
    """Architectures or other values as parameters for a test. All except some are slow."""
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in among]


SLOW_ABLATIONS = slow_but(set(ARCHITECTURES) - ABLATIONS)
