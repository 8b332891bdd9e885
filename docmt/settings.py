"""Base class for all settings: strict and typed, with one-line errors."""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    ValidationError,
    model_validator,
)

from docmt.errors import UserError
from docmt.files import read_json

MAX_NUMBER = 10**11
"""Maximum of all numbers in settings. Larger ones are typing errors."""


class Settings(BaseModel):
    """A configuration section. Unknown keys and wrong types are errors, and values are read-only."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    overridden: ClassVar[dict[str, type["Settings"]]] = {}
    """Mapping key in this section → class whose keys the mapping overrides."""
    study: ClassVar[type["Settings"] | None] = None
    """Class for the whole configuration, used to look up unknown keys. Set by its module."""

    @model_validator(mode="before")
    @classmethod
    def _remove_null_rows(cls, values: Any) -> Any:
        """Named mappings, such as `systems`, without null entries: a second file or `--set` removes a row with null."""
        if not isinstance(values, dict):
            return values
        named = {name for name, field in cls.model_fields.items() if _is_named_mapping(field.annotation)}
        return {
            key: {name: row for name, row in value.items() if row is not None}
            if key in named and isinstance(value, dict)
            else value
            for key, value in values.items()
        }

    @model_validator(mode="after")
    def _check_numbers(self) -> Self:
        for key, value in self:
            if isinstance(value, int | float) and abs(value) > MAX_NUMBER:
                raise ValueError(f"{key}: must be at most {MAX_NUMBER:,}")
        return self

    @model_validator(mode="after")
    def _check_case(self) -> Self:
        for key, field in type(self).model_fields.items():
            # Keys that are not plain text are checked names, which become parts of paths.
            if _is_named_mapping(field.annotation) and get_args(field.annotation)[0] is not str:
                check_distinct(getattr(self, key), where=key)
        return self

    @classmethod
    def load(cls, values: Any, *, where: str) -> Self:
        """Return the settings for plain values (from YAML or JSON)."""
        if not isinstance(values, dict):
            raise UserError(f"{where}: expected a mapping of settings, not {values!r}")
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise UserError(_describe(cls, error, where)) from None

    @classmethod
    def from_argument(cls, argument: str, *, where: str) -> Self:
        """Return the settings in a `--settings` option (see `read_argument`)."""
        return cls.load(read_argument(argument, where=where), where=where)


def read_argument(argument: str, *, where: str) -> Any:
    """Return the `--settings` value: JSON text, or `@` followed by a JSON file name."""
    if argument.startswith("@"):
        return read_json(Path(argument[1:]))
    try:
        return json.loads(argument)
    except json.JSONDecodeError as error:
        raise UserError(f"{where}: not JSON ({error.msg}): pass JSON text or @FILE") from None


PLAIN_WORDS = {
    "dict_type": "must be a mapping (`key: value`)",
    "model_type": "must be a mapping (`key: value`)",
    "model_attributes_type": "must be a mapping (`key: value`)",
    "list_type": "must be a list, such as [a, b]",
    "string_type": "must be text (in quotation marks)",
    "bool_type": "must be true or false",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}
"""Plain words for Pydantic's messages, by error type. Braces contain keys of Pydantic's `ctx`."""
MAX_VALUE_LENGTH = 80
"""Maximum characters of a wrong value in a message."""

NAME = r"[A-Za-z0-9][A-Za-z0-9_-]*"
"""Pattern for names that become part of paths."""


def check_name(name: str) -> str:
    """Return a valid name unchanged. Raises ValueError if it is invalid."""
    if not re.fullmatch(NAME, name):
        raise ValueError("a name may contain only letters, digits, '_' and '-', because it becomes part of paths")
    return name


def check_distinct(names: Iterable[str], *, where: str) -> None:
    """Raise ValueError if names are equal on a disk that ignores case."""
    names_by_path: dict[str, str] = {}
    for name in names:
        other = names_by_path.setdefault(name.lower(), name)
        if other != name:
            raise ValueError(f"{where}: {other!r} and {name!r} are equal on disks that ignore case; rename one")


def _without_braces(path: str) -> str:
    # Snakemake parses braces in a path as a wildcard, even if they are escaped.
    if "{" in path or "}" in path:
        raise ValueError("a path must not contain braces, because Snakemake treats them as wildcards: rename it")
    return path


UserPath = Annotated[str, AfterValidator(_without_braces)]
"""Path of a user-supplied file for a workflow rule."""


def nearest(name: str, words: list[str]) -> str:
    """Return a hint with the known word closest to `name`, or with all known words if none is close."""
    close = _closest(name, words)
    return f"did you mean {close!r}?" if close else f"known: {', '.join(sorted(words))}"


def _closest(name: str, words: list[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known word closest to `name`, or the shortest that contains it."""
    close = difflib.get_close_matches(name, words, n=1, cutoff=cutoff)
    return next(iter([*close, *sorted((word for word in words if len(name) > 2 and name in word), key=len)]), None)


def one_of(list_names: Callable[[], Iterable[str]], must: str) -> AfterValidator:
    """Return a validator for known names. The error consists of `must` and the closest name."""

    def check(name: str) -> str:
        names = list(list_names())
        if name not in names:
            raise ValueError(f"{must} ({nearest(name, names)})")
        return name

    return AfterValidator(check)


def look_up(mapping: Mapping[str, Any], name: str | None, *, where: str, what: str) -> Any:
    """Return `mapping[name]`. Raises UserError with the nearest name if there is none."""
    if name is None or name not in mapping:
        raise UserError(f"{where}: no {what} {name!r}; {nearest(str(name), list(mapping))}")
    return mapping[name]


def _describe(cls: type[BaseModel], error: ValidationError, where: str) -> str:
    """Return the first problem in a ValidationError as one line. Unknown keys come first, since most are typos."""
    problems = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    problem = problems[0]
    keys, owner = _locate(cls, problem["loc"])
    path = ".".join([where, *keys])
    kind = problem["type"]
    value, context = problem["input"], problem.get("ctx", {})
    if kind == "extra_forbidden":
        return f"{path}: unknown key; {_nearest_key(owner, keys[-1])}"
    if kind == "union_tag_invalid":
        name, key, tags = (context[name].replace("'", "") for name in ("tag", "discriminator", "expected_tags"))
        names = tags.split(", ")
        close = _closest(name, names)
        guess = f"did you mean {close!r}? " if close else ""
        return f"{path}.{key}: no {key} {name!r}; {guess}known: {', '.join(sorted(names))}"
    if kind == "union_tag_not_found":
        key = context["discriminator"].replace("'", "")
        return f"{path}.{key}: this key is missing"
    if kind == "missing":
        return f"{path}: this key is missing"
    if kind == "too_short":
        return f"{path}: must not be empty"
    if isinstance(value, str) and kind in ("float_type", "int_type"):
        hint = ""
        if re.fullmatch(r"[\d.+-]+e[\d+-]+", value.lower()):
            hint = ": write it with a point, as in 1.0e-4"
        elif re.fullmatch(r"[\d.+-]+", value):
            hint = ": write it without quotation marks in a YAML file, because Snakemake's --config passes text"
        return f"{path}: expected a number, but {value!r} is text{hint}"
    message = PLAIN_WORDS.get(kind, "").format(**context) or problem["msg"].removeprefix("Value error, ")
    message = re.sub(r"^\w+ should ", "must ", message)
    text = repr(value) if len(repr(value)) <= MAX_VALUE_LENGTH else f"{repr(value)[:MAX_VALUE_LENGTH]} …"
    if not problem["loc"] or value in keys[-1:]:  # the key itself is wrong
        return f"{path}: {message}"
    if message.startswith("must "):
        return f"{path}: {message}, not {text}"
    return f"{path}: {message}" if isinstance(value, dict) else f"{path}: {text}: {message}"


def _nearest_key(owner: type[BaseModel], key: str) -> str:
    """Return a hint for an unknown key: the same key in other sections, the nearest key of `owner`, or of all."""
    places: dict[str, list[str]] = {}
    for path, section in sections(Settings.study) if Settings.study else ():
        for name in section.model_fields:
            places.setdefault(name, []).append(f"{path}.{name}".lstrip("."))
    if key not in places and _closest(key, list(owner.model_fields)):
        return nearest(key, list(owner.model_fields))
    close = _closest(key, list(places), cutoff=0.75)
    paths = sorted(places.get(close or "", []), key=lambda path: path.count("."))[:2]
    return f"did you mean {' or '.join(paths)}?" if paths else nearest(key, list(owner.model_fields))


def _locate(cls: type[BaseModel], location: tuple[Any, ...]) -> tuple[list[str], type[BaseModel]]:
    """Return the keys that lead to a validation error, and the last settings class on this path.

    Pydantic's location also contains the tags that distinguish alternative classes. These are not keys.
    """
    keys: list[str] = []
    options = [cls]
    for part in map(str, location):
        tagged = [option for option in options if part in fixed_values(option).values()]
        if tagged and len(options) > 1:
            options = tagged
            continue
        # Pydantic's mark for a wrong mapping key, which is the part before it.
        if part == "[key]":
            continue
        keys.append(part)
        field = next((option.model_fields[part] for option in options if part in option.model_fields), None)
        if field is not None:
            options = [inner for _, inner in _settings_in(field.annotation)] or options
    return keys, options[0]


def fixed_values(cls: type[BaseModel]) -> dict[str, str]:
    """Return the keys with a single possible value, such as `reader: blank_lines`. They distinguish classes."""
    arguments = {name: get_args(field.annotation) for name, field in cls.model_fields.items()}
    return {name: values[0] for name, values in arguments.items() if len(values) == 1 and isinstance(values[0], str)}


def sections(top: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield a settings class and all nested ones, without duplicates, with their key paths."""
    seen: set[type[BaseModel]] = set()
    queue: list[tuple[str, type[BaseModel]]] = [("", top)]
    for path, cls in queue:  # which grows
        if cls in seen:
            continue
        seen.add(cls)
        yield path, cls
        annotations = {name: field.annotation for name, field in cls.model_fields.items()}
        for name, annotation in (annotations | getattr(cls, "overridden", {})).items():
            queue += [(f"{path}.{name}{below}".lstrip("."), section) for below, section in _settings_in(annotation)]


def _is_named_mapping(annotation: Any) -> bool:
    """True for `dict[str, Row]`. Where values can be anything, null is one of them."""
    return get_origin(annotation) is dict and get_args(annotation)[1] is not Any


def _settings_in(annotation: Any, below: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the settings classes inside an annotation, with `.NAME` for every enclosing mapping."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield below, annotation
        return
    arguments = get_args(annotation)
    if getattr(annotation, "__origin__", None) is dict:
        arguments, below = arguments[1:], f"{below}.NAME"
    for argument in arguments:
        yield from _settings_in(argument, below)
