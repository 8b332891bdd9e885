"""All architectures, as parameters of tests that take seconds for each."""

import pytest

from docmt.models.presets import ARCHITECTURES

ABLATIONS = {name for name in ARCHITECTURES if name.startswith("g_transformer_")}
"""Ablations of G-Transformer: each of their attentions is that of another architecture, too."""
SLOW_ABLATIONS = [pytest.param(name, marks=pytest.mark.slow if name in ABLATIONS else ()) for name in ARCHITECTURES]
DIVERSE = ("document_transformer", "hybrid_context", "g_transformer", "rst_mix", "global_context", "han", "cadec")
"""One of each kind of stream, attention and context."""
