"""Parsers by name: baselines, adapters, trained models."""

from pathlib import Path

from docmt.discourse.parsing.baselines import BASELINES, Parser, baseline
from docmt.errors import UserError


def load_parser(name: str) -> Parser:
    """Load a parser by its name: a baseline, `isanlp[:VERSION]`, `file:PATH` (trees from files), or a model file.

    Raises UserError when there is none of this name, or it cannot be loaded.
    """
    if name in BASELINES:
        return baseline(name)
    if Path(name).exists():
        from docmt.discourse.parsing.model_file import load_trained

        return load_trained(Path(name)).parser
    adapter, _, argument = name.partition(":")
    if adapter == "isanlp":
        from docmt.discourse.parsing.isanlp import DEFAULT_VERSION, IsanlpParser

        return IsanlpParser.load(argument or DEFAULT_VERSION)
    if adapter != "file":
        raise UserError(
            f"parser {name!r}: no such file; give a model file, {', '.join(BASELINES)}, isanlp:VERSION or file:PATH"
        )
    from docmt.discourse.parsing.made_elsewhere import FileParser

    return FileParser(Path(argument))
