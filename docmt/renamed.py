"""Former names of settings and commands. Version 1.0 accepts them, with one line for each that names the new one."""

import logging
import re
from collections.abc import Sequence
from typing import Any

from docmt.errors import UserError

log = logging.getLogger(__name__)

# The former name of a key, the sections that have it, and its new name
KEYS = {
    "at": (r"report\.claims\.[^.]+", "step"),
    "cutting": (r"systems\.[^.]+", "instances"),
    "device_tokens": (r"set-resources\.train", "micro_batch_tokens"),
    "documents": (r"corpora\.controlled\.[^.]+", "generator"),
    "facts": (r"report\.tables\.[^.]+", "columns"),
    "frozen": (r"training\.[^.]+|.*\.training", "freeze"),
    "lines": (r"report\.figures\.[^.]+", "series"),
    "model_of": (r"systems\.[^.]+", "use_model_of"),
    "new_parts": (r"training\.[^.]+|.*\.training", "init_new_parameters"),
    "normalise": (r"text|datasets\.[^.]+\.text", "normalize"),
    "place": (r"report\.claims\.[^.]+", "source"),
    "reaches": (r"report\.claims\.[^.]+", "first_step_below"),
    "relations": (r"report\.claims\.[^.]+", "comparisons"),
    "scored": (r"systems\.[^.]+", "evaluate"),
    "values": (r"report\.figures\.[^.]+", "x_values"),
}
# The former name of a value, the keys that have it, or a list of such values, and its new name
VALUES = {
    "aligned instances": (r".*\.metrics?", "sentence count preserved"),
    "forced ends": (r".*\.metrics?", "length-limited sentences"),
    "segments": (r"corpora\.controlled\.[^.]+\.generator", "nested"),
    "selection": (r"corpora\.controlled\.[^.]+\.generator", "flat"),
    "silent": (r".*\.init_new_parameters", "zero"),
    "tokenised d-BLEU (instances)": (r".*\.metrics?", "tokenized d-BLEU (instances)"),
    "tokenised s-BLEU": (r".*\.metrics?", "tokenized s-BLEU"),
}
# The words that call a command, before and now
COMMANDS = {
    "decode contrast": "decode score-candidates",
    "decode generate": "decode translate-suite",
    "discourse gather": "discourse merge",
    "evaluate take-output": "evaluate import-output",
    "models bundle": "models add-parser",
    "report gather": "report collect",
    "text pack": "text save-pipeline",
    "tidy": "clean",
}
OPTIONS = {"--device-tokens": "--micro-batch-tokens"}


def rename_settings(values: Any, section: str = "", *, announce: bool = True) -> Any:
    """Return plain settings with new names in place of former ones.

    Args:
        values: settings of a section, or a whole configuration.
        section: keys that lead to the section, separated by points.
        announce: log a line for each former name.

    Raises:
        UserError: a section has a key under its former and its new name.
    """
    replaced: dict[str, str] = {}
    renamed = _rename(values, section, replaced)
    for former, new in replaced.items() if announce else ():
        log.warning("setting `%s` is now called `%s`: rename it in your configuration", former, new)
    return renamed


def _rename(values: Any, path: str, replaced: dict[str, str]) -> Any:
    """Return the values with new names, and add each former name with its new one to `replaced`."""
    if isinstance(values, list):
        items = [_rename(value, path, replaced) for value in values]
        replaced |= {old: new for old, new in zip(values, items, strict=True) if isinstance(old, str) and old != new}
        return items
    if not isinstance(values, dict):
        return _new_name(VALUES, values, path)
    renamed: dict[Any, Any] = {}
    for key, value in values.items():
        new = _new_name(KEYS, key, path)
        if new != key and new in values:
            raise UserError(f"config.{path}: {key!r} is the former name of {new!r}: remove {key!r}")
        renamed[new] = _rename(value, f"{path}.{new}".lstrip("."), replaced)
        if isinstance(value, str) and value != renamed[new]:
            replaced[f"{key}: {value}"] = f"{new}: {renamed[new]}"
        elif new != key:
            replaced[key] = new
    return renamed


def _new_name(names: dict[str, tuple[str, str]], name: Any, path: str) -> Any:
    pattern, new = names.get(name, ("", name)) if isinstance(name, str) else ("", name)
    return new if re.fullmatch(pattern, path) else name


def rename_command(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with new names in place of former ones, and log a line for each."""
    renamed = list(words)
    start = next((place for place, word in enumerate(renamed) if not word.startswith("-")), 0)
    for former, new in COMMANDS.items():
        end = start + former.count(" ") + 1
        if renamed[start:end] == former.split():
            renamed[start:end] = new.split()
            log.warning("`docmt %s` is now called `docmt %s`", former, new)
    for place, word in enumerate(renamed):
        option, equals, value = word.partition("=")
        if option in OPTIONS:
            renamed[place] = f"{OPTIONS[option]}{equals}{value}"
            log.warning("option `%s` is now called `%s`", option, OPTIONS[option])
    return renamed
