"""Commands start fast, because they only import slow libraries that they need."""

import json
from collections import defaultdict
from importlib.util import find_spec

TEXT = {"numpy", "sacremoses"}
TORCH = {"numpy", "torch"}
TRAINING = TORCH | {"torch._dynamo", "sympy"}  # an optimizer of torch brings its compiler

ALLOWED = {
    "controlled generate": {"numpy"},
    "corpora combine": {"numpy"},
    "corpora count-overlap": {"numpy"},
    "text tokenize": TEXT,
    "text learn-truecaser": TEXT,
    "text truecase": {"numpy"},
    "text learn-bpe": {"numpy"},
    "text apply-bpe": {"numpy"},
    "text learn-vocabulary": {"numpy"},
    "text save-pipeline": {"numpy"},
    "text count-roundtrip": TEXT,
    "discourse train-segmenter": TRAINING | TEXT,
    "discourse train-parser": TRAINING | TEXT,
    "discourse annotate": TORCH | TEXT,
    "discourse evaluate-segmenter": TORCH | TEXT,
    "discourse evaluate-parser": TORCH | TEXT,
    "discourse count-trees": {"numpy", "pandas"},
    "instances build": {"numpy"},
    "instances count": {"numpy"},
    # Fabric imports torchmetrics where it is installed, which docmt does not do, and with it nearly everything.
    "train": None if find_spec("torchmetrics") else TRAINING | {"lightning_fabric"},
    "decode translate": TORCH,
    "decode score-candidates": TORCH | TEXT,
    "evaluate run": {"numpy", "sacrebleu", "lxml"},
    "evaluate difference": {"numpy", "sacrebleu", "lxml", "scipy"},
    "report collect": {"numpy"},
    "report cases": {"numpy", "sacrebleu", "lxml", "pandas", "matplotlib"},
    "report reader": {"numpy", "sacrebleu", "lxml"},
    # The PDF backend of matplotlib imports fontTools, which imports lxml.
    "report render": {"numpy", "pandas", "matplotlib", "lxml"},
}
"""Command → slow libraries (recorder/sitecustomize.py) that it may import. None for all."""


def read_imports(study):
    """Imports of a study's commands."""
    modules = defaultdict(set)
    for path in study.imports.glob("*.json"):
        note = json.loads(path.read_text(encoding="utf-8"))
        modules["train" if note["command"].startswith("train") else note["command"]] |= set(note["imports"])
    return modules


def too_many(modules, allowed):
    """Unnecessary imports by command."""
    limits = {command: names for command, names in allowed.items() if names is not None}
    return {command: modules[command] - names for command, names in limits.items() if modules[command] - names}


def test_commands_import_only_what_they_need(finished):
    modules = read_imports(finished)
    assert set(modules) == set(ALLOWED)
    assert too_many(modules, ALLOWED) == {}
