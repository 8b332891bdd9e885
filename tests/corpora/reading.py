"""Read test files in a format, or convert them to a suite."""

import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from docmt.corpora.catalog import ReadableCorpus
from docmt.corpora.readers.registry import Format, read
from docmt.corpora.splits import convert_suite
from docmt.errors import UserError


def write_roles(folder: Path, files: dict, suffix: str = "") -> dict[str, Path]:
    """Write files by role, with names such as `file.ROLE` and a suffix. Contents are text, bytes or JSON."""
    paths = {role: folder / f"file.{role}{suffix}" for role in files}
    for role, content in files.items():
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        paths[role].write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return paths


def parse(folder: Path, files: dict, languages=("en", "de"), *, suffix="", **form):
    """Documents in files by role, and counts."""
    return read(write_roles(folder, files, suffix), form=TypeAdapter(Format).validate_python(form), languages=languages)


def refusal(folder: Path, files: dict, languages=("en", "de"), **form) -> str:
    """The message that refuses files by role."""
    with pytest.raises(UserError) as caught:
        list(parse(folder, files, languages, **form)[0])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def texts(documents):
    """Ids and sides of documents."""
    return [(document.id, *map(list, document.sides)) for document in documents]


def convert(folder: Path, files: dict, *, counts=None, **form):
    """Items in files by role, and counts of omitted items. `counts` are the expected counts."""
    split = {"files": {role: path.name for role, path in write_roles(folder, files).items()}} | (counts or {})
    value = {"languages": ["en", "de"], "format": form, "splits": {"test": split}}
    described = ReadableCorpus.load(value, where="test")
    return convert_suite(described, "test", folder=folder, where="corpus x")
