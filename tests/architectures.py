"""All architectures, as parameters of tests that take seconds for each."""

import pytest

from docmt.models.presets import ARCHITECTURES

ABLATIONS = {name for name in ARCHITECTURES if name.startswith("g_transformer_")}
"""Ablations of G-Transformer: each of their attentions is that of another architecture, too."""
DIVERSE = ("document_transformer", "hybrid_context", "g_transformer", "rst_mix", "global_context", "han", "cadec")
"""One of each kind of stream, attention and context."""
TRAINED = ("g_transformer", "global_context", "cadec")
"""A model of groups, one that trains on documents and on sentences alone, and one that draws drafts."""


def slow_but(quick, among=ARCHITECTURES):
    """Architectures as parameters of a test. Slow but for some."""
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in among]


SLOW_ABLATIONS = slow_but(set(ARCHITECTURES) - ABLATIONS)
