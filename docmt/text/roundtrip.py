"""Share of lines restored exactly from subwords, and causes of differences."""

import itertools
from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from docmt.errors import UserError
from docmt.files import iterate_lines
from docmt.logs import progress
from docmt.provenance import describe
from docmt.text.pipeline import TextPipeline

N_EXAMPLES = 5

# Characters that normalization replaces by others in the same group.
_SAMES = {"quotes": "\"'`´„“”‚‘’«»‹›″′", "dashes": "-‐‑‒–—―−", "ellipses": "…."}


def measure_roundtrip(pipeline: TextPipeline, lines: Iterable[str], *, lang: str) -> dict[str, Any]:
    """Compare all lines with their restored forms.

    Returns:
        `lines`, `restored` (exactly equal), `restored_but_white_space` (equal except for white space), `share` and
        `share_but_white_space` in percent (None without lines), `causes` (their counts), and up to five
        `examples` per cause. Only the first cause of a difference counts.
    """
    n_lines = 0
    causes: Counter[str] = Counter()
    examples: dict[str, list[dict[str, str]]] = {}
    for line in lines:
        n_lines += 1
        restored = pipeline.restore(pipeline.prepare(line, lang=lang), lang=lang)
        if restored == line:
            continue
        cause = find_cause(line, restored)
        causes[cause] += 1
        if len(examples.setdefault(cause, [])) < N_EXAMPLES:
            examples[cause].append({"line": line, "restored": restored})
    restored = n_lines - sum(causes.values())
    but_white_space = restored + causes["white space"]
    share = share_but_white_space = None
    if n_lines:
        share = round(100 * restored / n_lines, 3)
        share_but_white_space = round(100 * but_white_space / n_lines, 3)
    return {
        "lines": n_lines,
        "restored": restored,
        "restored_but_white_space": but_white_space,
        "share": share,
        "share_but_white_space": share_but_white_space,
        "causes": dict(causes.most_common()),
        "examples": examples,
    }


def find_cause(line: str, restored: str) -> str:
    """Return the cause of the difference between a line and its restored form."""
    line_words, restored_words = line.split(), restored.split()
    if line_words == restored_words:
        return "white space"
    # Runs of white space no longer matter. If several causes apply, the first test below decides.
    line, restored = " ".join(line_words), " ".join(restored_words)
    if line.lower() == restored.lower():
        changes = [i for i, (one, other) in enumerate(zip(line, restored, strict=False)) if one != other]
        starts = not any(map(str.isalnum, line[: changes[0]]))
        return "first letter in lower case" if len(changes) == 1 and starts else "case elsewhere"
    if line.replace(" ", "").lower() == restored.replace(" ", "").lower():
        return "blanks between tokens"
    # All changed characters on both sides. Next to replaced characters, spaces may also differ.
    changed: set[str] = set()
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, line, restored, autojunk=False).get_opcodes():
        if tag != "equal":
            changed.update(line[i1:i2] + restored[j1:j2])
    changed.discard(" ")
    for cause, characters in _SAMES.items():
        if changed <= set(characters):
            return cause
    if changed <= set(",.").union(*_SAMES.values()):
        return "punctuation of several kinds"
    if not any(map(str.isprintable, changed)):
        return "control characters"
    return "other"


def measure_files(pipeline: TextPipeline, inputs: Iterable[Path]) -> dict[str, Any]:
    """Return `measure_roundtrip` per language over all files, whose names end in the language, with provenance."""
    files: dict[str, list[Path]] = {}
    for path in inputs:
        if not path.suffix:
            raise UserError(f"--inputs {path}: the name must end in the language, for example .en")
        files.setdefault(path.suffix[1:], []).append(path)
    results = {}
    for lang, paths in files.items():
        lines = itertools.chain.from_iterable(map(iterate_lines, paths))
        results[lang] = measure_roundtrip(
            pipeline, progress(lines, label=f"round trip {lang}", unit="lines"), lang=lang
        )
    return {"languages": results, "provenance": describe(settings=pipeline.settings.model_dump(mode="json"))}
