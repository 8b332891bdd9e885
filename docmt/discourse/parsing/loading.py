"""Parsers by name: baselines, adapters, trained models."""

from pathlib import Path

from docmt.discourse.parsing.baselines import BASELINES, Parser, baseline
from docmt.errors import UserError

ADAPTERS = ("isanlp", "file")
"""`isanlp:VERSION` runs isanlp_rst; `file:PATH` takes trees from files."""


def load_parser(name: str) -> Parser:
    """Load a parser by its name: a baseline, `isanlp[:VERSION]`, `file:PATH`, or the path of a model file.

    Raises UserError when there is none of this name, or it cannot be loaded.
    """
    if name in BASELINES:
        return baseline(name)
    adapter, _, argument = name.partition(":")
    if adapter in ADAPTERS and not Path(name).exists():
        return _load_adapter(adapter, argument)
    if not Path(name).exists():
        raise UserError(
            f"parser {name!r}: no such file; give a model file, {', '.join(BASELINES)}, isanlp:VERSION or file:PATH"
        )
    from docmt.discourse.parsing.model_file import load_trained

    return load_trained(Path(name)).parser


def _load_adapter(adapter: str, argument: str) -> Parser:
    if adapter == "isanlp":
        from docmt.discourse.parsing.isanlp import DEFAULT_VERSION, IsanlpParser

        return IsanlpParser.load(argument or DEFAULT_VERSION)
    from docmt.discourse.parsing.made_elsewhere import FileParser

    return FileParser(Path(argument))
