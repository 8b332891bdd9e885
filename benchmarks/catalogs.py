"""Measure how many correct translations in Django's message catalogs the rules of `corpora.filters` reject.

Usage: `python benchmarks/catalogs.py FOLDER`

If FOLDER is new, the script installs Django into it with pip, without dependencies. Catalogs contain sentences, labels
and formats such as `%(size)d GB`, so they are harder than running text. `--show 5` prints rejected pairs.
"""

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path

import polib

from docmt.corpora.filtering import PairRules
from docmt.corpora.settings import FilterSettings

PACKAGE = "Django==5.2"
LANGUAGES = (
    *("ar", "de", "el", "fa", "fi", "he", "hi", "ja", "ka", "km", "ko"),
    *("my", "ru", "sr_Latn", "ta", "th", "tr", "uz", "zh_Hans"),
)
RULES = ("short", "long", "identical", "length ratio", "control characters", "script")
Pair = tuple[str, str]


def read_pairs(folder: Path, lang: str) -> list[Pair]:
    """Return the translated messages in all catalogs for a language, as single lines without duplicates."""
    pairs: dict[Pair, None] = {}
    for path in sorted(folder.glob(f"django/**/locale/{lang}/LC_MESSAGES/*.po")):
        for entry in polib.pofile(str(path), encoding="utf-8"):
            if entry.msgstr and not entry.fuzzy and not entry.obsolete:
                pairs[" ".join(entry.msgid.split()), " ".join(entry.msgstr.split())] = None
    return list(pairs)


def main() -> None:
    """Parse the command line and print a table with a row per language."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--languages", nargs="+", default=LANGUAGES)
    parser.add_argument("--show", type=int, default=0)
    options = parser.parse_args()
    if not (options.folder / "django").is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(options.folder)]
        subprocess.run([*command, PACKAGE], check=True)
    print("| " + " | ".join(("language", "pairs", *RULES)) + " |")
    print("|---" * (len(RULES) + 2) + "|")
    for lang in options.languages:
        pairs = read_pairs(options.folder, lang)
        judged = PairRules(FilterSettings(), ("en", lang)).judge(pairs)
        counts = Counter(judged)
        shares = [f"{100 * counts[rule] / len(pairs):.2f}" if counts[rule] else "0" for rule in RULES]
        print("| " + " | ".join((lang, f"{len(pairs):,}", *shares)) + " |")
        n_examples: Counter[str] = Counter()
        for rule, (src, tgt) in zip(judged, pairs, strict=True):
            if rule and n_examples[rule] < options.show:
                n_examples[rule] += 1
                print(f"    {rule}\t{src}\t{tgt}")


if __name__ == "__main__":
    main()
