"""Measure how much artificial noise the rules of `corpora.filters` find, and how many clean pairs they reject.

Usage: `python benchmarks/filters.py --texts bible/train talks/test --languages en de --others bible/train.ru`

Texts are prefixes, as `docmt corpora read` writes them. `--others` contains lines in other languages, with the language
as suffix. Every kind of noise replaces 5 % of the pairs, at random among the pairs that it can change. With
`--write FOLDER`, the script measures nothing, and writes the first text with all kinds of noise for
`benchmarks/cleaning.yaml`.
"""

import argparse
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from docmt.corpora.documents import index_path, iterate_index
from docmt.corpora.filtering import (
    DUPLICATE_CHARACTERS,
    LANGUAGE_CHARACTERS,
    WIDTHS,
    PairRules,
    number_repeated,
)
from docmt.corpora.settings import FilterSettings
from docmt.files import read_lines, write_lines
from docmt.languages import language_of, usual_script

SHARE = 0.05
COPIES = (str, str.upper, lambda text: text.rstrip(".?!"), lambda text: f"“{text}”")
"""Changes that leave a sentence untranslated."""
Pair = tuple[str, str]


def noises(
    originals: Sequence[Pair], languages: Sequence[str], others: dict[str, list[str]]
) -> dict[str, Callable[[Pair], Pair]]:
    """Return kinds of noise, as functions that change a pair if possible. `originals` are pairs for copies."""
    draw = random.Random(1).choice
    scripts = {lang: usual_script(lang) for lang in [*languages, *others]}
    is_wide = language_of(languages[1]) in WIDTHS
    long = [pair for pair in originals if max(map(len, pair)) >= DUPLICATE_CHARACTERS]

    def replaced(pair: Pair, *, same_script: bool) -> Pair:
        places = [
            (side, lang)
            for side in (0, 1)
            for lang in others
            if lang != languages[side] and (scripts[lang] == scripts[languages[side]]) == same_script
        ]
        side, lang = draw(places)
        wide = WIDTHS.get(language_of(lang), 1)
        texts = iter(lambda: draw(others[lang]), None)
        text = next(text for text in texts if wide * sum(map(str.isalpha, text)) >= LANGUAGE_CHARACTERS)
        return (text, pair[1]) if side == 0 else (pair[0], text)

    return {
        "empty": lambda pair: (pair[0], ""),
        "short": lambda pair: (pair[0], pair[1][:1]) if min(map(len, pair)) > 3 and not is_wide else pair,
        "long": lambda pair: (pair[0], " ".join([pair[1]] * (2500 // max(len(pair[1]), 1) + 1))),
        "identical": lambda pair: (pair[0], draw(COPIES)(pair[0])) if len(pair[0]) > 12 else pair,
        "length ratio": lambda pair: (pair[0], pair[1][: len(pair[1]) // 5]) if len(pair[0]) >= 60 else pair,
        "control characters": lambda pair: (pair[0], pair[1] + draw("\ufffd\x00\x92\ue000\x93")),
        "script": lambda pair: replaced(pair, same_script=False),
        "language": lambda pair: replaced(pair, same_script=True),
        "duplicate": lambda pair: draw(long),
    }


def judge(pairs: Sequence[Pair], rules: PairRules) -> list[str]:
    """First rule that rejects a pair."""
    judged = rules.judge(pairs)
    marks = mark_duplicates(pairs, judged, rules)
    return [rule or "duplicate" * again for rule, again in zip(judged, marks, strict=True)]


def mark_duplicates(pairs: Sequence[Pair], judged: Sequence[str], rules: PairRules) -> list[bool]:
    """True for repeated pairs that no other rule rejects."""
    occurred: set[int] = set()
    marks = []
    for number, rule in zip(number_repeated(lambda: pairs, rules.lengths), judged, strict=True):
        marks.append(number in occurred and rule in ("", "duplicate"))
        occurred |= {number} - {0}
    return marks


def write_noisy(folder: Path, text: Path, pairs: Sequence[Pair], *arguments: Any) -> None:
    """Write `noisy.{lang}` and the document index `noisy.documents`."""
    noisy, order = list(pairs), list(range(len(pairs)))
    random.Random(2).shuffle(order)
    places = iter(order)
    for change in noises(pairs, *arguments).values():
        for number in itertools.islice(places, int(SHARE * len(pairs))):
            noisy[number] = change(pairs[number])
    for lang, side in zip(arguments[0], zip(*noisy, strict=True), strict=True):
        write_lines(folder / f"noisy.{lang}", side, checksum=False)
    lengths = [length for _, length in iterate_index(index_path(text))]
    ends = itertools.accumulate(lengths)
    lines = (str(list(range(end - length, end))) for end, length in zip(ends, lengths, strict=True))
    write_lines(folder / "noisy.documents", lines, checksum=False)


def print_row(cells: Iterable[object]) -> None:
    """Print a Markdown table row."""
    print("| " + " | ".join(map(str, cells)) + " |")


def main() -> None:
    """Parse the command line and print a table per text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", nargs="+", required=True)
    parser.add_argument("--languages", nargs=2, required=True)
    parser.add_argument("--others", nargs="+", type=Path, default=[])
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    others = {path.suffix[1:]: read_lines(path) for path in options.others}
    rules = PairRules(FilterSettings(languages=True), options.languages)
    pairs = [
        pair
        for text in options.texts
        for pair in zip(*(read_lines(Path(f"{text}.{lang}")) for lang in options.languages), strict=True)
    ]
    if options.write:
        write_noisy(options.write, Path(options.texts[0]), pairs, options.languages, others)
        return
    clean = judge(pairs, rules)
    touched = Counter(clean)
    print(f"{' '.join(options.texts)}: {len(pairs):,} pairs")
    print_row(("kind", "planted", "found, %", "by this rule, %", "clean pairs dropped by this rule, %"))
    print_row(["-"] * 5)
    order = [number for number in range(len(pairs)) if not clean[number]]
    random.Random(2).shuffle(order)
    originals = [pairs[number] for number in order[len(order) // 2 :]]
    for kind, change in noises(originals, options.languages, others).items():
        noisy, changed = list(pairs), []
        for number in order[: len(order) // 2]:
            if len(changed) < SHARE * len(pairs) and (new := change(pairs[number])) != pairs[number]:
                noisy[number] = new
                changed.append(number)
        if kind == "duplicate":
            # Of a copy and its original, the later one is dropped.
            n_found = n_own = sum(mark_duplicates(noisy, clean, rules)) - touched["duplicate"]
        else:
            broken = rules.judge([noisy[number] for number in changed])
            n_found = sum(map(bool, broken))
            n_own = broken.count(kind)
        shares = (f"{100 * n / max(len(changed), 1):.1f}" for n in (n_found, n_own))
        print_row((kind, f"{len(changed):,}", *shares, f"{100 * touched[kind] / len(pairs):.2f}"))
    n_touched = sum(n for rule, n in touched.items() if rule not in ("", "duplicate"))
    print(f"Clean pairs dropped by all rules but duplicate: {100 * n_touched / len(pairs):.2f} %\n")


if __name__ == "__main__":
    main()
