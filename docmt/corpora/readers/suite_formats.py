"""Test suite formats: published contrastive and generative sets, and docmt's formats (docs/files.md)."""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from typing_extensions import override

from docmt.corpora.file_patterns import existing_files
from docmt.corpora.readers.parallel_files import read_equal
from docmt.corpora.readers.reader import Files, FormatName, SuiteFormat
from docmt.corpora.suite_items import first_difference, read_contrastive, read_generative, read_items
from docmt.errors import UserError
from docmt.files import read_json, read_lines

VOITA_BREAK = " _eos "
CONTRAPRO_BREAK = "<SEP>"
CTXPRO_BREAK = "<eos>"
# An item in ContraPro has a reference and two wrong variants (in 31 of 12,000 items three).
CONTRAPRO_VARIANTS = 3
CONTRAPRO_PRONOUNS = ("er", "sie", "es")

# An item as the values of a JSON object.
Item = dict[str, Any]


class VoitaSuite(SuiteFormat):
    """Contrastive test sets of Voita et al. (2019): one JSON list per phenomenon (the role)."""

    reader: FormatName[Literal["voita_suite"]]

    @override
    def convert(self, files: Files) -> Iterator[Item]:
        # An item has four sentences, and candidates differ in the last.
        for phenomenon, path in files.items():
            for number, value in enumerate(_read_list(path), start=1):
                where = f"{path}: item {number}"
                try:
                    src = value["src"].split(VOITA_BREAK)
                    candidates = [candidate.split(VOITA_BREAK) for candidate in value["dst"]]
                    correct = value["true_ind"]
                    distance = value["ctx_dist"]
                except (KeyError, TypeError, AttributeError):
                    raise UserError(f"{where}: `src`, `dst`, `true_ind` or `ctx_dist` is missing") from None
                name = f"{phenomenon}/{number:05d}"
                yield _contrastive(name, src, candidates, correct=correct, distance=distance, where=where)


class ContraProSuite(SuiteFormat):
    """ContraPro as text (roles `en` and `de`), with a candidate per line: `previous sentence <SEP> sentence`.

    ContraPro's JSON files (role `fields`) add the distances of items.
    """

    reader: FormatName[Literal["contrapro_suite"]]

    @override
    def convert(self, files: Files) -> Iterator[Item]:
        return _contrapro_items(self, files)


class ContraProGenerative(SuiteFormat):
    """ContraPro, read as `contrapro_suite`. A translation is correct if it contains the reference's pronoun."""

    holds = "generative"

    reader: FormatName[Literal["contrapro_generative"]]

    @override
    def convert(self, files: Files) -> Iterator[Item]:
        for item in _contrapro_items(self, files):
            if item["kind"] is None:
                raise UserError(f"{files['de']}: {item['id']}: the variants do not replace er, sie or es")
            reference = item["candidates"][item["correct"]][item["sentence"]]
            shared = {key: item[key] for key in ("id", "phenomenon", "distance", "kind", "src", "sentence")}
            yield shared | {"expected": item["kind"], "match": "tokens", "reference": reference}


class BawdenSuite(SuiteFormat):
    """Contrastive test sets of Bawden et al. (2018): a JSON file per phenomenon, which is the role of the file."""

    reader: FormatName[Literal["bawden_suite"]]

    @override
    def convert(self, files: Files) -> Iterator[Item]:
        for phenomenon, path in files.items():
            blocks = read_json(path)
            if not isinstance(blocks, dict):
                raise UserError(f"{path}: contains no blocks with `src` and `trg`")
            number = 0
            for block_name, block in blocks.items():
                where = f"{path}: block {block_name}"
                try:
                    # Blocks in the anaphora set have one source and several targets, in lexical choice examples.
                    pairs = []
                    for pair in block.get("trg", []):
                        pairs.append((block["src"], pair))
                    for example in block.get("examples", []):
                        pairs.append((example["src"], example["trg"]))
                    for src, pair in pairs:
                        number += 1
                        # A correct target is semi-correct after a doubtful translation of the context.
                        kind = "correct" if "correct" in pair else "semi-correct"
                        candidates = [pair[kind], pair["incorrect"]]
                        name = f"{phenomenon}/{number:05d}"
                        item = _contrastive(name, src, candidates, correct=0, distance=1, where=where)
                        if "trg" not in block:
                            kind = block.get("type")
                        yield item | {"kind": kind}
                except (KeyError, TypeError, AttributeError):
                    raise UserError(f"{where}: `src` and `trg` (or `examples` with them) are missing") from None


class CtxproGenerative(SuiteFormat):
    """ctxpro: JSON with items (role `items`), and a line with each item's sentences, the tested one last (`inputs`)."""

    holds = "generative"

    reader: FormatName[Literal["ctxpro_generative"]]
    phenomenon: str
    """Tested phenomenon, for example `formality`."""

    @override
    def convert(self, files: Files) -> Iterator[Item]:
        items_path = self.pick(files, "items")
        inputs_path = self.pick(files, "inputs")
        values = _read_list(items_path)
        lines = read_lines(inputs_path)
        if len(values) != len(lines):
            raise UserError(
                f"{len(values)} items in {items_path}, but {len(lines)} lines in {inputs_path}: the numbers must "
                "be equal"
            )
        for number, (value, line) in enumerate(zip(values, lines, strict=True), start=1):
            src = [sentence.strip() for sentence in line.split(CTXPRO_BREAK)]
            try:
                payload = value["src segment"].strip()
                rule = value["rule"]
                expected = value["expected"]
                reference = value["ref segment"]
            except (KeyError, TypeError, AttributeError):
                keys = "`src segment`, `ref segment`, `expected` or `rule`"
                raise UserError(f"{items_path}: item {number} has no keys {keys}") from None
            if src[-1] != payload:
                raise UserError(f"{inputs_path}: line {number} does not end with the source sentence of item {number}")
            yield {
                "id": f"{self.phenomenon}/{number:05d}",
                "phenomenon": self.phenomenon,
                "distance": value.get("ante distance"),
                "kind": rule,
                "src": src,
                "sentence": len(src) - 1,
                "expected": expected,
                "reference": reference,
                "match": "words",
            }


class JsonSuite(SuiteFormat):
    """Contrastive items in docmt's format (role `items`, docs/files.md)."""

    reader: FormatName[Literal["jsonl_suite"]]

    @override
    def convert(self, files: Files) -> Iterator[Item]:
        return map(vars, read_items(self.pick(files, "items"), read_contrastive))


class JsonGenerative(SuiteFormat):
    """Generative items in docmt's format (role `items`, docs/files.md)."""

    holds = "generative"

    reader: FormatName[Literal["jsonl_generative"]]

    @override
    def convert(self, files: Files) -> Iterator[Item]:
        return map(vars, read_items(self.pick(files, "items"), read_generative))


def _contrapro_items(form: SuiteFormat, files: Files) -> Iterator[Item]:
    """Yield ContraPro's items: runs of lines with the same English text and the same previous German sentence.

    The kind of an item is the pronoun. Distances are not in the lines but in `fields`.
    """
    paths = [form.pick(files, "en"), form.pick(files, "de")]
    distances = _contrapro_distances(files.get("fields"))
    rows = []
    for number, lines in enumerate(zip(*read_equal(*paths), strict=True), start=1):
        sides = []
        for path, line in zip(paths, lines, strict=True):
            side = [part.strip() for part in line.split(CONTRAPRO_BREAK)]
            sides.append(side)
            if len(side) != 2:
                raise UserError(f"{path}: line {number} is not `previous sentence {CONTRAPRO_BREAK} sentence`")
        rows.append(sides)
    items = []
    for (src, _), run in groupby(rows, key=lambda sides: (sides[0], sides[1][0])):
        for candidates in _cut_at_references([tgt for _, tgt in run]):
            items.append((src, candidates))
    for number, (src, candidates) in enumerate(items, start=1):
        (_, right), *wrong = candidates
        item_distances: set[int] = set()
        pronouns = list(CONTRAPRO_PRONOUNS) if wrong else []
        for _, variant in wrong:
            item_distances |= distances.get((_letters(src[1]), _letters(right), _letters(variant)), set())
            # The pronoun that all variants replace. Other words can also differ, in agreement with it.
            words = zip(re.findall(r"\w+", right.lower()), re.findall(r"\w+", variant.lower()), strict=False)
            replaced_words = {word for word, other in words if word != other}
            pronouns = [pronoun for pronoun in pronouns if pronoun in replaced_words]
        # Unknown unless all entries for the wrong variants agree.
        distance = None
        if len(item_distances) == 1:
            distance = item_distances.pop()
        name = f"pronoun/{number:05d}"
        where = f"{paths[1]}: item {number}"
        item = _contrastive(name, src, candidates, correct=0, distance=distance, where=where)
        yield item | {"kind": next(iter(pronouns), None)}


def _cut_at_references(run: list[list[str]]) -> list[list[list[str]]]:
    """Cut a run into items. Adjacent items can share both texts, but the reference (first line) occurs once per item.

    A group that is too long for one item has several references, and is cut into items of three lines.
    """
    groups: list[list[list[str]]] = []
    for candidate in run:
        if candidate == run[0]:
            groups.append([])
        groups[-1].append(candidate)
    items = []
    for group in groups:
        size = len(group)
        if size > CONTRAPRO_VARIANTS + 1:
            size = CONTRAPRO_VARIANTS
        for start in range(0, len(group), size):
            items.append(group[start : start + size])
    return items


def _contrapro_distances(path: Path | None) -> dict[tuple[str, str, str], set[int]]:
    """Return letters of source, reference and wrong variant → antecedent distances.

    Only letters, because ContraCAT normalizes punctuation and case.
    """
    distances: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    if path is None:
        return distances
    for _, file in existing_files(path):
        for number, value in enumerate(_read_list(file), start=1):
            try:
                sides = _letters(value["src segment"]), _letters(value["ref segment"])
                for error in value["errors"]:
                    distances[*sides, _letters(error["contrastive"])].add(value["ante distance"])
            except (KeyError, TypeError):
                raise UserError(f"{file}: item {number} lacks a key of ContraPro's items") from None
    return distances


def _read_list(path: Path) -> list[Any]:
    values = read_json(path)
    if not isinstance(values, list):
        raise UserError(f"{path}: must be a list of items, not {type(values).__name__}")
    return values


def _letters(text: str) -> str:
    return re.sub(r"\W+", "", text).lower()


def _contrastive(
    name: str, src: list[str], candidates: list[list[str]], *, correct: int, distance: int | None, where: str
) -> Item:
    """Return a contrastive item. Raises UserError if candidates are malformed."""
    is_index = isinstance(correct, int) and 0 <= correct < len(candidates)
    if not is_index or any(len(candidate) != len(src) for candidate in candidates):
        raise UserError(f"{where}: each candidate needs {len(src)} sentences, and the correct one must be among them")
    return {
        "id": name,
        "phenomenon": name.partition("/")[0],
        "distance": distance,
        "src": src,
        "candidates": candidates,
        "correct": correct,
        "sentence": first_difference(candidates),
    }
