"""The schema and the reference of all keys, made from the settings classes themselves."""

import json
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from docmt.config.schema import Config
from docmt.models.settings import ModelSettings
from docmt.settings import Settings


def json_schema() -> str:
    """The JSON schema of a configuration file, for editors that complete and check YAML."""
    return json.dumps(Config.model_json_schema(), indent=1, ensure_ascii=False) + "\n"


def manual() -> str:
    """The reference of all keys as Markdown: one table per section."""
    blocks = [_table("", Config)]
    for path, cls in _sections():
        blocks.append(_table(path, cls))
    return "\n".join(blocks)


def _sections() -> Iterator[tuple[str, type[BaseModel]]]:
    """The classes below the top, each once, with the path of its keys; a model's settings stand under `systems`."""
    seen: set[type[BaseModel]] = set()
    queue: list[tuple[str, type[BaseModel]]] = [("", Config)]
    while queue:
        path, cls = queue.pop(0)
        if cls in seen:
            continue
        seen.add(cls)
        if cls is not Config:
            yield path, cls
        fields = [(name, field.annotation) for name, field in cls.model_fields.items()]
        if path == "systems.NAME":
            fields.append(("model", ModelSettings))
        for name, annotation in fields:
            queue += [(f"{path}.{name}{below}".lstrip("."), found) for below, found in _classes(annotation)]


def _classes(annotation: Any, below: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """The settings classes inside an annotation, with `.NAME` for each mapping on the way to them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield below, annotation
        return
    arguments = get_args(annotation)
    if getattr(annotation, "__origin__", None) is dict:
        yield from _classes(arguments[1], f"{below}.NAME")
        return
    for argument in arguments:
        yield from _classes(argument, below)


def _table(path: str, cls: type[BaseModel]) -> str:
    title = f"## `{path}`" if path else "## Sections"
    about = "" if not path else f"\n{_one_line(cls.__doc__)}\n"
    rows = [
        f"| `{name}` | {_type(cls, name)} | {_default(field)} | {_one_line(field.description)} |"
        for name, field in cls.model_fields.items()
    ]
    return "\n".join([title, about, "| key | type | default | meaning |", "|---|---|---|---|", *rows, ""])


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined or isinstance(value, Settings):
        return "see below"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _type(cls: type[BaseModel], name: str) -> str:
    schema = cls.model_json_schema()
    return _schema_type(schema["properties"][name], schema.get("$defs", {}))


def _schema_type(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    """A type in words for people, from its JSON schema."""
    if "$ref" in schema:
        return "section" if "properties" in definitions[schema["$ref"].split("/")[-1]] else "text"
    if "enum" in schema:
        return "one of " + ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_schema_type(part, definitions) for part in schema[key]))
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_schema_type(schema.get('items', {}), definitions)}"
    if kind == "object":
        below = schema.get("additionalProperties")
        return f"names → {_schema_type(below, definitions)}" if isinstance(below, dict) else "mapping"
    names = {
        "integer": "whole number",
        "number": "number",
        "string": "text",
        "boolean": "true or false",
        "null": "null",
    }
    return names.get(kind, "any") + _bounds(schema)


def _bounds(schema: dict[str, Any]) -> str:
    words = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {schema[key]:g}" for key, sign in words.items() if key in schema]
    return f" {', '.join(bounds)}" if bounds else ""
