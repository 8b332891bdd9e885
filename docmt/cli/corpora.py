"""`docmt corpora`: list, fetch, read, combine, generate, compare and check corpora."""

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from docmt.errors import UserError

if TYPE_CHECKING:
    from docmt.corpora.catalogue import ReadableCorpus

MIRROR_VARIABLE = "DOCMT_MIRROR"


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of `docmt corpora`."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_list(commands)
    _add_fetch(commands)
    _add_read(commands)
    _add_combine(commands)
    _add_generate(commands)
    _add_overlap(commands)
    _add_suite(commands)
    _add_check(commands)


def _add(commands: argparse._SubParsersAction, name: str, run, summary: str) -> argparse.ArgumentParser:
    from docmt.cli.main import HelpFormatter

    command = commands.add_parser(name, help=summary, description=summary, formatter_class=HelpFormatter)
    command.set_defaults(run=run)
    return command


def _add_list(commands: argparse._SubParsersAction) -> None:
    command = _add(commands, "list", _list, "print the catalog as a table")
    command.add_argument("--json", action="store_true", help="print JSON instead")


def _add_mirror(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--mirror",
        metavar="DIR",
        default=os.environ.get(MIRROR_VARIABLE) or None,
        help=f"folder with the files of the catalog; or set ${MIRROR_VARIABLE}",
    )


def _add_languages(command: argparse.ArgumentParser) -> None:
    command.add_argument("--src-lang", required=True, metavar="LANG", help="source language")
    command.add_argument("--tgt-lang", required=True, metavar="LANG", help="target language")


def _add_one_or_two_languages(command: argparse.ArgumentParser, other: str) -> None:
    summary = f"source and target language, {other}"
    command.add_argument("--languages", required=True, nargs="+", metavar="LANG", help=summary)


def _add_fetch(commands: argparse._SubParsersAction) -> None:
    command = _add(commands, "fetch", _fetch, "fetch and verify the files of a corpus, from a mirror or the network")
    command.add_argument("--corpus", required=True, metavar="NAME", help="name in the catalog")
    command.add_argument("--splits", nargs="+", metavar="SPLIT", help="only these splits")
    command.add_argument("--out", required=True, metavar="FOLDER", help="folder for the files, uncompressed")
    _add_mirror(command)


def _add_read(commands: argparse._SubParsersAction) -> None:
    command = _add(commands, "read", _read, "read a split; write text, document index and counts")
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("--corpus", metavar="NAME", help="name in the catalog")
    which.add_argument("--spec", metavar="S", help="description of your own files, JSON text or @FILE")
    command.add_argument("--split", required=True, help="name of the split")
    _add_one_or_two_languages(command, "or the language of a monolingual corpus")
    command.add_argument("--files", metavar="FOLDER", default=".", help="folder with the files as fetched")
    command.add_argument("--out", required=True, metavar="PREFIX", help="writes PREFIX.{lang} and so on")


def _add_combine(commands: argparse._SubParsersAction) -> None:
    command = _add(commands, "combine", _combine, "concatenate splits into one split of a dataset")
    command.add_argument("--inputs", required=True, nargs="+", metavar="PREFIX", help="splits to concatenate")
    _add_one_or_two_languages(command, "or one language: of parallel inputs, that side is taken")
    command.add_argument("--out", required=True, metavar="PREFIX", help="the combined split")


def _add_generate(commands: argparse._SubParsersAction) -> None:
    command = _add(commands, "generate", _generate, "generate the controlled English-German corpus")
    command.add_argument("--settings", required=True, metavar="S", help="JSON text or @FILE")
    command.add_argument("--out", required=True, metavar="FOLDER", help="folder for the splits and suites")


def _add_overlap(commands: argparse._SubParsersAction) -> None:
    command = _add(
        commands, "overlap", _overlap, "count test sentences and documents that also occur in the training split"
    )
    command.add_argument("--train", required=True, nargs="+", metavar="PREFIX", help="training splits")
    command.add_argument("--tests", required=True, nargs="+", metavar="PREFIX", help="development and test splits")
    _add_languages(command)
    command.add_argument("--out", required=True, metavar="FILE.json", help="the counts")


def _add_suite(commands: argparse._SubParsersAction) -> None:
    command = _add(commands, "suite", _suite, "convert a published contrastive test set")
    command.add_argument("--corpus", required=True, metavar="NAME", help="name in the catalog")
    command.add_argument("--split", default="test", help="name of the split")
    command.add_argument("--files", required=True, metavar="FOLDER", help="folder with the files as fetched")
    command.add_argument("--out", required=True, metavar="FILE.jsonl", help="one item per line")


def _add_check(commands: argparse._SubParsersAction) -> None:
    command = _add(commands, "check", _check, "read everything in a mirror and compare the counts with the catalog")
    command.add_argument("--corpora", nargs="+", metavar="NAME", help="only these corpora")
    _add_mirror(command)


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
        _print_table(rows)


def _fetch(options: argparse.Namespace) -> None:
    from docmt.corpora.catalogue import find_corpus
    from docmt.corpora.fetching import fetch_corpus

    mirror = Path(options.mirror) if options.mirror else None
    fetch_corpus(find_corpus(options.corpus), Path(options.out), splits=options.splits, mirror=mirror)


def _read(options: argparse.Namespace) -> None:
    from docmt.corpora.reading import files_by_role, read_split, write_split

    corpus, where, origin = _described(options)
    files = files_by_role(corpus.split(options.split, where=where), Path(options.files))
    documents, counts = read_split(corpus, options.split, files=files, languages=options.languages, where=where)
    write_split(Path(options.out), documents, counts, languages=options.languages, origin=origin)


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

    combine(options.inputs, Path(options.out), languages=options.languages)


def _generate(options: argparse.Namespace) -> None:
    from docmt.corpora.controlled.generator import generate_corpus
    from docmt.corpora.controlled.settings import ControlledSettings

    settings = ControlledSettings.from_argument(options.settings, where="corpora.controlled")
    generate_corpus(settings, Path(options.out))


def _overlap(options: argparse.Namespace) -> None:
    from docmt.corpora.combining import write_overlap

    write_overlap(
        [Path(train) for train in options.train],
        [Path(test) for test in options.tests],
        Path(options.out),
        languages=(options.src_lang, options.tgt_lang),
    )


def _suite(options: argparse.Namespace) -> None:
    import logging

    from docmt.corpora.catalogue import find_corpus
    from docmt.corpora.reading import files_by_role
    from docmt.corpora.suites import convert_suite
    from docmt.files import write_jsonl

    entry = find_corpus(options.corpus)
    files = files_by_role(entry.corpus.split(options.split, where=entry.where), Path(options.files))
    items, dropped = convert_suite(entry.corpus, options.split, files=files, where=entry.where)
    write_jsonl(Path(options.out), items)
    for cause, n in dropped.items():
        logging.getLogger(__name__).info("%s: left out: %d × %s", options.out, n, cause)


def _check(options: argparse.Namespace) -> int:
    from docmt.corpora.catalogue import find_corpus, load_catalogue
    from docmt.corpora.checking import check_corpus

    if not options.mirror:
        raise UserError(f"no mirror folder: give --mirror DIR, or set ${MIRROR_VARIABLE}")
    if not Path(options.mirror).is_dir():
        raise UserError(f"mirror {options.mirror}: no such folder")
    entries = [find_corpus(name) for name in options.corpora or load_catalogue()]
    results = [result for entry in entries for result in check_corpus(entry, Path(options.mirror))]
    _print_table([vars(result) for result in results])
    return int(any(result.state == "bad" for result in results))


def _print_table(rows: list[dict]) -> None:
    import tabulate

    print(tabulate.tabulate(rows, headers="keys", intfmt=",", missingval="", tablefmt="simple"))
