"""docmt: document-level neural machine translation, from raw corpora to a results report.

Library use (docs/translation.md): `from docmt import load_model, Translator, DecodingSettings`.
"""

import importlib
from typing import Any

__version__ = "1.0.0"

_PUBLIC = {
    "DecodingSettings": "docmt.decoding.settings",
    "Translator": "docmt.decoding.translation",
    "UserError": "docmt.errors",
    "load_model": "docmt.models.model_file",
}
"""Public names and their modules, imported on first use because torch takes seconds."""


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
