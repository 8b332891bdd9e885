"""Reading configuration files and merging them, strictly."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from docmt.config.checks import check_config
from docmt.config.schema import Config
from docmt.config.systems import merge
from docmt.errors import UserError
from docmt.files import read_text

CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters. They break SVG and LaTeX files and move terminal cursors."""
MAX_KEYS = 10_000
"""Maximum number of keys in one mapping. A few lines such as `<<: [*a, *a]` can create billions."""
MAX_VALUES = 1_000_000
"""Maximum number of values in a document. Nested alias lists can also create billions."""


class _StrictLoader(yaml.SafeLoader):
    """YAML in which a duplicate key is an error, not a silent overwrite."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > MAX_KEYS:
            raise yaml.constructor.ConstructorError(
                None, None, f"more than {MAX_KEYS:,} keys in one mapping", node.start_mark
            )


def _construct_mapping(loader: _StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: dict[Any, int] = {}
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue
        key = loader.construct_object(key_node, deep=True)
        line = key_node.start_mark.line + 1
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"duplicate key {key!r} (lines {seen[key]} and {line})", key_node.start_mark
            )
        seen[key] = line
    # Also reads the merged keys. They are no duplicates, because they can be overridden on purpose.
    return loader.construct_mapping(node, deep=True)


_StrictLoader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def parse_yaml(text: str, *, where: str) -> Any:
    """Parse a YAML or JSON text."""
    try:
        value = yaml.load(text, Loader=_StrictLoader)  # which is a SafeLoader
        if _n_values(value, {}) > MAX_VALUES:
            raise UserError(f"{where}: aliases (`*name`) expand to more than {MAX_VALUES:,} values: write them out")
        return value
    except UserError:
        raise
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise UserError(f"{where}: line {line}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{where}: not YAML ({error})") from None
    # PyYAML raises many error types, for example for month 13, a list as a key or `!!bool perhaps`.
    except Exception as error:
        raise UserError(f"{where}: cannot be read as YAML ({error})") from None


def _n_values(value: Any, counts: dict[int, int]) -> int:
    """Count nested values, including repeated aliases. `counts` caches the counts by list id."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in counts:
        counts[id(value)] = MAX_VALUES  # of a list that contains itself
        parts = value.values() if isinstance(value, dict) else value
        counts[id(value)] = 1 + sum(_n_values(part, counts) for part in parts)
    return counts[id(value)]


def read_config_file(path: Path) -> dict[str, Any]:
    """Read a YAML or JSON file."""
    values = parse_yaml(read_text(path), where=str(path))
    if values is None:  # an empty file, or one with comments only
        return {}
    if not isinstance(values, dict):
        raise UserError(f"{path}: expected a mapping of sections, not {type(values).__name__}")
    return values


def load_config(values: dict[str, Any]) -> Config:
    """Validate a whole configuration."""
    config = Config.load(values, where="config")
    _check_characters(values, "config")
    check_config(config)
    return config


def _check_characters(values: Any, where: str) -> None:
    if isinstance(values, dict):
        for key, value in values.items():
            _check_characters(key, f"{where}, a key")
            _check_characters(value, f"{where}.{key}")
    elif isinstance(values, list):
        for number, value in enumerate(values):
            _check_characters(value, f"{where}.{number}")
    elif isinstance(values, str):
        match = CONTROL.search(values)
        if match is not None:
            raise UserError(f"{where}: contains the control character U+{ord(match[0]):04X}; remove it")


def read_config_files(paths: Iterable[Path], changes: Iterable[str] = ()) -> dict[str, Any]:
    """Read configuration files and merge them. Later files override earlier ones, and `KEY=VALUE` overrides files."""
    values: dict[str, Any] = {}
    for path in paths:
        values = merge(values, read_config_file(path))
    for change in changes:
        values = merge(values, read_change(change))
    return values


def read_change(change: str) -> dict[str, Any]:
    """Return the nested mapping for one `KEY=VALUE` with a YAML value."""
    key, equals, text = change.partition("=")
    if not equals or not re.fullmatch(r"[^.\s]+(\.[^.\s]+)*", key):
        raise UserError(f"--set {change}: expected KEY=VALUE, for example decoding.beam_size=4")
    value = parse_yaml(text, where=f"--set {key}")
    # In YAML 1.1, 1e-4 is text. Here it can only be a number.
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]+(\.[0-9]*)?[eE][+-]?[0-9]+", value):
        value = float(value)
    first, *rest = key.split(".")
    for name in reversed(rest):
        value = {name: value}
    return {first: value}
