"""`docmt corpora`: list, fetch, read, combine, generate, compare and check corpora."""

import argparse
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from docmt.cli.options import MIRROR_VARIABLE, CommandParser, print_table
from docmt.errors import UserError
from docmt.files import write_jsonl

if TYPE_CHECKING:
    from docmt.corpora.catalogue import ReadableCorpus

log = logging.getLogger(__name__)


def add_commands(parser: CommandParser) -> None:
    """Add the subcommands of `docmt corpora`."""
    listing = parser.add_command("list", _list, "print the catalog as a table")
    listing.add_argument("--json", action="store_true", help="print JSON instead")

    summary = "fetch and verify the files of a corpus, from a mirror or the network"
    fetch = parser.add_command("fetch", _fetch, summary)
    fetch.add_argument("--corpus", required=True, metavar="NAME", help="name in the catalog")
    fetch.add_argument("--splits", nargs="+", metavar="SPLIT", help="only these splits")
    _add_path(fetch, "--out", "FOLDER", "folder for the files, uncompressed")
    fetch.add_mirror()

    read = parser.add_command("read", _read, "read a split; write text, document index and counts")
    _add_description(read)
    read.add_argument("--split", required=True, help="name of the split")
    _add_languages(read, "or the language of a monolingual corpus")
    _add_path(read, "--out", "PREFIX", "writes PREFIX.{lang} and so on")

    combining = parser.add_command("combine", _combine, "concatenate splits into one split of a dataset")
    _add_path(combining, "--inputs", "PREFIX", "splits to concatenate", nargs="+")
    _add_languages(combining, "or one language: of parallel inputs, that side is taken")
    _add_path(combining, "--out", "PREFIX", "the combined split")

    generate = parser.add_command("generate", _generate, "generate the controlled English-German corpus")
    generate.add_argument("--settings", required=True, metavar="S", help="JSON text or @FILE")
    _add_path(generate, "--out", "FOLDER", "folder for the splits and suites")

    summary = "count test sentences and documents that also occur in the training split"
    overlap = parser.add_command("overlap", _overlap, summary)
    _add_path(overlap, "--train", "PREFIX", "training splits", nargs="+")
    _add_path(overlap, "--tests", "PREFIX", "development and test splits", nargs="+")
    overlap.add_argument("--src-lang", required=True, metavar="LANG", help="source language")
    overlap.add_argument("--tgt-lang", required=True, metavar="LANG", help="target language")
    _add_path(overlap, "--out", "FILE.json", "the counts")

    suite = parser.add_command("suite", _suite, "convert a contrastive or generative test set")
    _add_description(suite)
    suite.add_argument("--split", default="test", help="name of the split")
    _add_path(suite, "--out", "FILE.jsonl", "one item per line")

    check = parser.add_command("check", _check, "read everything in a mirror and compare the counts with the catalog")
    check.add_argument("--corpora", nargs="+", metavar="NAME", help="only these corpora")
    check.add_mirror()


def _add_description(command: CommandParser) -> None:
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("--corpus", metavar="NAME", help="name in the catalog")
    which.add_argument("--spec", metavar="S", help="description of your own files, JSON text or @FILE")
    command.add_argument("--files", type=Path, metavar="FOLDER", default=".", help="folder with the files as fetched")


def _add_path(command: CommandParser, option: str, metavar: str, purpose: str, *, nargs: str | None = None) -> None:
    command.add_argument(option, type=Path, required=True, nargs=nargs, metavar=metavar, help=purpose)


def _add_languages(command: CommandParser, other: str) -> None:
    summary = f"source and target language, {other}"
    command.add_argument("--languages", required=True, nargs="+", metavar="LANG", help=summary)


def _list(options: argparse.Namespace) -> None:
    from docmt.corpora.catalogue import load_catalogue

    rows = [
        {
            "corpus": name,
            "languages": "-".join(entry.corpus.languages),
            "split": split_name,
            "holds": entry.corpus.holds(split_name),
            "documents": split.documents,
            "sentences": split.sentences,
            "kind": entry.kind(split_name),
            "terms": entry.family.terms,
            "version": entry.corpus.version,
            "title": entry.corpus.title,
        }
        for name, entry in load_catalogue().items()
        for split_name, split in entry.corpus.splits.items()
    ]
    if options.json:
        print(json.dumps(rows, ensure_ascii=False, indent=1))
    else:
        print_table(rows)


def _fetch(options: argparse.Namespace) -> None:
    from docmt.corpora.catalogue import find_corpus
    from docmt.corpora.fetching import fetch_corpus

    mirror = Path(options.mirror) if options.mirror else None
    fetch_corpus(find_corpus(options.corpus), options.out, splits=options.splits, mirror=mirror)


def _read(options: argparse.Namespace) -> None:
    from docmt.corpora.reading import files_by_role, read_split, write_split

    corpus, where, origin = _described(options)
    files = files_by_role(corpus.split(options.split, where=where), options.files)
    documents, counts = read_split(corpus, options.split, files=files, languages=options.languages, where=where)
    write_split(options.out, documents, counts, languages=options.languages, origin=origin)


def _described(options: argparse.Namespace) -> tuple["ReadableCorpus", str, dict[str, str]]:
    """The corpus that `--corpus` or `--spec` describes, its name for messages, and the origin of its text."""
    from docmt.corpora.catalogue import ReadableCorpus, find_corpus

    if options.spec is None:
        entry = find_corpus(options.corpus)
        corpus, where = entry.corpus, entry.where
        origin = {"corpus": entry.name, "version": entry.corpus.version, "licence": entry.family.license}
    else:
        corpus, where = ReadableCorpus.from_argument(options.spec, where="--spec"), "--spec"
        origin = {"corpus": "files of the user", "version": "", "licence": ""}
    return corpus, where, origin | {"split": options.split}


def _combine(options: argparse.Namespace) -> None:
    from docmt.corpora.combining import combine

    combine(options.inputs, options.out, languages=options.languages)


def _generate(options: argparse.Namespace) -> None:
    from docmt.corpora.controlled.generator import generate_corpus
    from docmt.corpora.controlled.settings import controlled_settings

    settings = controlled_settings(options.settings, where="corpora.controlled")
    generate_corpus(settings, options.out)


def _overlap(options: argparse.Namespace) -> None:
    from docmt.corpora.combining import write_overlap

    write_overlap(options.train, options.tests, options.out, languages=(options.src_lang, options.tgt_lang))


def _suite(options: argparse.Namespace) -> None:
    from docmt.corpora.reading import files_by_role
    from docmt.corpora.suites import convert_suite

    corpus, where, _ = _described(options)
    files = files_by_role(corpus.split(options.split, where=where), options.files)
    items, dropped = convert_suite(corpus, options.split, files=files, where=where)
    write_jsonl(options.out, items)
    for cause, n in dropped.items():
        log.info("%s: left out: %d × %s", options.out, n, cause)


def _check(options: argparse.Namespace) -> int:
    from docmt.corpora.catalogue import find_corpus, load_catalogue
    from docmt.corpora.checking import check_corpus

    if not options.mirror:
        raise UserError(f"no mirror folder: give --mirror DIR, or set ${MIRROR_VARIABLE}")
    if not Path(options.mirror).is_dir():
        raise UserError(f"mirror {options.mirror}: no such folder")
    entries = [find_corpus(name) for name in options.corpora or load_catalogue()]
    results = [result for entry in entries for result in check_corpus(entry, Path(options.mirror))]
    print_table([vars(result) for result in results])
    return int(any(result.state == "bad" for result in results))
