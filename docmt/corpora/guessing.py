"""Guessing the format and languages of user-supplied files from their names and first lines."""

import contextlib
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmt.corpora.catalog import ReadableCorpus
from docmt.corpora.file_patterns import is_pattern, matching_files
from docmt.corpora.readers.registry import Format
from docmt.corpora.readers.tabular import PARADOCS_CELLS
from docmt.corpora.readers.translated_files import read_units, variant_language
from docmt.errors import UserError
from docmt.files import iterate_lines, read_xml
from docmt.languages import find_tags, language_of

HEAD_LINES = 2000
_CODES = "af ar as az bg bn bs ca cs cy da de el en es et eu fa fi fr ga gl gu he hi hr hu hy id is it ja ka km kn ko "
_MORE_CODES = "lb lo lt lv mk ml mr ms mt my nl no or pa pl pt ro ru sk sl sq sr sv ta te th tr uk uz vi zh"
LANGUAGES = frozenset((_CODES + _MORE_CODES).split())
"""Languages whose codes are recognized in names of files and columns."""
NORWEGIAN = {"nob": "nb", "nb": "nb", "nno": "nn", "nn": "nn"}
"""Bokmål and Nynorsk. In a corpus, they are different languages, although models treat them as one."""
SOURCES = ("source", "src")
TARGETS = ("target", "tgt", "trg")
IDS = ("id", "document", "document_id", "doc", "doc_id", "docid", "dialogue", "dialog")
"""Usual names of columns."""
OPUS_XML = re.compile(r"\s*(<\?xml[^>]*>)?\s*(<!DOCTYPE cesAlign|<(cesAlign|letsmt|text|document)\b)", re.IGNORECASE)
"""Beginnings of OPUS files with alignments or sentences."""
SEGMENTS = re.compile(r"<(\?xml|!doctype|(src|ref|tst)set|mteval|doc)\b", re.IGNORECASE)
"""Beginnings of files for the format `segments`."""
BY_SUFFIX = {".tmx": "tmx", ".jsonl": "jsonl", ".parquet": "parquet", ".xml": "wmt_xml"}


@dataclass(frozen=True)
class FoundSplit:
    """Format, files by role, and languages of a split, as in a config."""

    form: Format
    files: Mapping[str, Path]
    languages: tuple[str, str]


def find_split(paths: Sequence[Path], *, form: Mapping[str, Any], languages: Sequence[str], where: str) -> FoundSplit:
    """Guess the description of a split. The settings in `form` and `languages` override guesses."""
    paths = list(paths)
    for number, path in enumerate(paths):
        if path.is_dir():
            paths[number] = path / "*"
    files: list[Path] = []  # the first match of each pattern
    for path in paths:
        _, file = next(iter(matching_files(path)), (path.name, path))
        files.append(file)
        if not file.exists():
            raise UserError(f"{where}: {path}: no such file")
        if suffix_of(file) == ".xml":
            head = ""
            with contextlib.suppress(UserError):  # XML in another encoding, which is not from OPUS
                head = " ".join(itertools.islice(iterate_lines(file), 5))
            if OPUS_XML.match(head):
                raise UserError(f"{file}: cannot read OPUS XML: download the corpus in Moses format or as TMX")
    if len({path.resolve() for path in paths}) < len(paths):
        raise UserError(f"{where}: {paths[0]} occurs twice: pass one file per language")
    if len(paths) == 1:
        (path,) = paths
        codes = tuple(languages) or _languages_of_one(path, files[0])
        guessed = _format_of_one(files[0], codes, form)
        roles = ["both"]
    elif len(paths) <= 3:
        codes = tuple(languages) or tuple(filter(None, map(language_in, paths[:2])))
        guessed = dict(form)
        if "reader" not in form:
            guessed = _format_of_sides(paths, files)
        # For example, the language `eng` matches names with `en`.
        by_code = {_code(code): code for code in codes}
        roles = [by_code.get(language_in(path) or "", "") for path in paths[:2]]
        if sorted(roles) != sorted(codes):
            roles = list(codes)
        if len(paths) == 3:
            role = "index" if guessed["reader"] == "indexed_lines" else "ids"
            roles.append(role)
    else:
        raise UserError(f"{where}: {len(paths)} files: pass one, one per language, or a quoted pattern: 'en/*.txt'")
    if len(set(codes)) != 2:
        seen = "but the file names contain no language codes"
        if codes:
            seen = f"not {' '.join(codes)!r}"
        raise UserError(f"{where}: {paths[0]}: two languages are needed, {seen}: pass --languages SOURCE TARGET")
    src, tgt = codes
    described = ReadableCorpus.load({"languages": [src, tgt], "format": guessed, "splits": {}}, where=where)
    return FoundSplit(described.format, dict(zip(roles, paths, strict=True)), (src, tgt))


def language_in(path: Path) -> str | None:
    """Return the language in the name of a file or its folder: `train.en`, `film.en.srt`, `de/*.txt`, `dev.deu`."""
    for part in path.parts[:-3:-1]:
        codes = [word for word, _, _ in find_tags(part) if is_code(word)]
        if codes:
            return _code(codes[-1])
    return None


def is_code(word: str) -> bool:
    """True if a word is a language code with two or three letters, perhaps with script and region: `en`, `pt-BR`."""
    tags = [(start, end) for _, start, end in find_tags(word)]
    # `in` is a former code for Indonesian, but in names it is English or a region.
    return tags == [(0, len(word))] and language_of(word) in LANGUAGES and word.lower() != "in"


def _code(word: str) -> str:
    """Return the language code for a config: `en` for `eng`, `nn` for `nno`."""
    return NORWEGIAN.get(word.lower()) or language_of(word)


def _languages_of_one(path: Path, file: Path) -> tuple[str, ...]:
    """Return the languages of a file with both sides: from its first unit or columns, or from `en-de` in its path.

    `path` can be a pattern whose first match is `file`.
    """
    suffix = suffix_of(file)
    codes: list[str] = []
    if suffix == ".tmx":
        for unit in read_units(read_xml(file), where=str(file))[:1]:
            codes = [variant_language(variant) for variant in unit.iterfind(".//{*}tuv")]
    elif suffix in (".csv", ".tsv", ".txt"):
        codes = [cell for cell in _header(file)[0] if is_code(cell)]
        if len(codes) != 2:  # otherwise, `id` is Indonesian
            codes = [code for code in codes if code.lower() not in IDS]
    if len(codes) != 2:
        codes = []
        for pair in re.findall(r"(?<![A-Za-z])([A-Za-z]{2,3})-([A-Za-z]{2,3})(?![A-Za-z])", path.as_posix()):
            # `fr-CA` is a language and a region.
            if all(map(is_code, pair)) and pair[0].isupper() == pair[1].isupper():
                codes = list(pair)  # the last pair counts
    return tuple(map(_code, codes))


def _format_of_one(file: Path, languages: Sequence[str], form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the format of one file with both languages."""
    reader = form.get("reader") or BY_SUFFIX.get(suffix_of(file))
    if reader not in (None, "dialogue_csv"):
        return {"reader": reader, **form}
    header, delimiter = _header(file)
    names = {}
    for cell in header:
        name = cell.lower()
        if is_code(cell):
            name = _code(cell)
        names[name] = cell
    src = tgt = ""
    if len(languages) == 2:
        src, tgt = map(_code, languages)
    usual_names = {
        "source": [src, *SOURCES],
        "target": [tgt, *TARGETS],
        "id": [name for name in IDS if name not in (src, tgt)],
    }
    columns: dict[str, str | None] = {}
    for key, candidates in usual_names.items():
        candidates = [names[name] for name in candidates if name in names]
        columns[key] = form.get(key) or next(iter(candidates), None)
    if reader or suffix_of(file) == ".csv" or (columns["source"] and columns["target"]):
        for key, column in columns.items():
            if column is None and key not in form:
                raise UserError(
                    f"{file}: cannot guess the column for {key} among {', '.join(header)}: pass for example "
                    "--format '{reader: dialogue_csv, id: scene, source: english, target: german}'; `id: null` "
                    "makes each row a document"
                )
        has_quotes = form.get("delimiter", delimiter) != "\t" or '"' in next(iterate_lines(file), "")
        return {"reader": "dialogue_csv", **columns, "delimiter": delimiter, "quotes": has_quotes, **form}
    return _format_without_header(file)


def _format_without_header(file: Path) -> dict[str, Any]:
    """Return the format of one file with both languages and no header, by the number of cells in its lines."""
    rows = []
    for line in itertools.islice(iterate_lines(file), HEAD_LINES):
        if line.strip():
            rows.append(line.rstrip("\r").split("\t"))
    n_cells = min(map(len, rows), default=0)
    if n_cells == PARADOCS_CELLS:
        return {"reader": "paradocs"}
    if n_cells == 2:
        return {"reader": "tsv"}
    if n_cells == 3:
        candidates = []
        for number in (1, 2, 3):
            cells = [row[number - 1] for row in rows]
            # Rows with an id are consecutive, so the column has as many runs as values.
            if len(set(cells)) == len(list(itertools.groupby(cells))) < len(rows):
                candidates.append((len(set(cells)), number))
        candidates.sort()
        if not candidates or (len(candidates) > 1 and candidates[1][0] < 1.25 * candidates[0][0]):
            raise UserError(
                f"{file}: cannot guess which of the three columns is the document id: pass for example --format "
                "'{reader: tsv, id_column: 1, columns: [2, 3]}', or without ids "
                "'{reader: tsv, columns: [1, 2]}'"
            )
        id_column = candidates[0][1]
        columns = [1, 2, 3]
        columns.remove(id_column)
        return {"reader": "tsv", "id_column": id_column, "columns": columns}
    raise UserError(f"{file}: cannot guess the format: pass both sides, or --format (docs/corpora.md)")


def _format_of_sides(paths: Sequence[Path], firsts: Sequence[Path]) -> dict[str, Any]:
    """Return the format of two files (or patterns), one per language, with an optional third for documents.

    `firsts` are the first matches of the patterns.
    """
    heads = [next(iterate_lines(file), "").strip() for file in firsts]
    if len(paths) == 3:
        if heads[2].startswith("["):
            return {"reader": "indexed_lines"}
        if heads[2].count("\t") == 3:
            return {"reader": "named_lines", "id_cells": 2}
        return {"reader": "named_lines"}
    if all(suffix_of(path) in (".srt", ".vtt") for path in firsts):
        return {"reader": "srt_pairs"}
    if any(map(is_pattern, paths)):
        return {"reader": "document_files"}
    if all(map(SEGMENTS.match, heads)):
        return {"reader": "segments"}
    if all(head == "<d>" for head in heads):
        return {"reader": "marked_lines"}
    # If both sides have blank lines between text, these end documents. On one side, they are empty sentences.
    for path in paths:
        blanks = itertools.dropwhile(bool, (not line.strip(" \t\r") for line in iterate_lines(path)))
        if (True, False) not in itertools.pairwise(blanks):
            return {"reader": "single_lines"}
    return {"reader": "blank_lines"}


def _header(file: Path) -> tuple[list[str], str]:
    """Return the cells of the first line, and their delimiter."""
    line = next(iterate_lines(file), "").rstrip("\r")
    delimiter = max(",;\t", key=line.count)
    if suffix_of(file) == ".tsv" and "\t" in line:
        delimiter = "\t"
    return [cell.strip('" ') for cell in line.split(delimiter)], delimiter


def suffix_of(path: Path) -> str:
    """Return the suffix of a name in lower case, without `.gz`."""
    return Path(path.name.lower().removesuffix(".gz")).suffix
