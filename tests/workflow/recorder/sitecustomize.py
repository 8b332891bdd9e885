"""Python runs this at its start. It records the slow libraries that a command has imported.

It writes a JSON line with the command and the libraries to a new file in the folder IMPORTS_FOLDER.
"""

import atexit
import json
import os
import sys
from pathlib import Path

SLOW = (
    "jieba",
    "lightning_fabric",
    "lxml",
    "matplotlib",
    "nltk",
    "numpy",
    "pandas",
    "requests",
    "sacrebleu",
    "sacremoses",
    "scipy",
    "snakemake",
    "sympy",
    "torch",
    "torch._dynamo",
)


def note() -> None:
    """Write the line."""
    command = [word for word in sys.argv[1:3] if not word.startswith("-")]
    imports = [name for name in SLOW if name in sys.modules]
    path = Path(os.environ["IMPORTS_FOLDER"]) / f"{os.getpid()}.json"
    path.write_text(json.dumps({"command": " ".join(command), "imports": imports}), encoding="utf-8")


if "IMPORTS_FOLDER" in os.environ and Path(sys.argv[0]).name == "docmt":
    atexit.register(note)
