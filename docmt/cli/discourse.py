"""`docmt discourse`: treebanks, segmenters, parsers, the trees of a text, and pictures of trees."""

import argparse
import itertools
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from docmt.cli.options import SENTENCE_TREES, CommandParser
from docmt.corpora.documents import read_index
from docmt.discourse.parsing.settings import ParserSettings
from docmt.discourse.segmentation.settings import SegmenterSettings
from docmt.errors import UserError
from docmt.files import atomic_writer, sha256_file, write_json
from docmt.logs import progress
from docmt.provenance import describe

if TYPE_CHECKING:
    from docmt.discourse.documents import DiscourseDocument

log = logging.getLogger(__name__)

FORMATS = ("gum", "gcdt", "rst_dt", "rs3")
FORMS = ("dependency", "constituent")
PARSER_HELP = "model file, chain, flat, right_branching, sentence_branching, …, isanlp:VERSION or file:PATH"


def add_commands(parser: CommandParser) -> None:
    """Add all commands."""
    treebank = parser.add_command("treebank", run_treebank, "read a treebank and write its splits")
    treebank.add_argument("--format", choices=FORMATS, required=True, help="which treebank")
    treebank.add_argument("--lang", help="language of the text, for its tokenizer; with --format rs3")
    treebank.add_paths(files="folder with the files as fetched", out="folder to write")
    summary = "convert GUM's trees to dependency trees and compare them with the published ones"
    check = parser.add_command("check-conversion", run_check_conversion, summary)
    check.add_paths(files="folder with the files of GUM as fetched")
    _add_segmenter_commands(parser)
    _add_parser_commands(parser)
    _add_annotation_commands(parser)
    _add_picture_commands(parser)


def _add_segmenter_commands(commands: CommandParser) -> None:
    train = commands.add_command("train-segmenter", run_train_segmenter, "train an EDU segmenter")
    train.add_settings("SegmenterSettings")
    train.add_paths(train="PREFIX of .discourse.jsonl, and of .syntax.jsonl if any")
    train.add_paths(dev="PREFIX on which the best epoch is chosen")
    train.add_argument("--seed", type=int, required=True, help="seed of all random numbers")
    train.add_paths(out="model file to write")
    evaluate = commands.add_command("evaluate-segmenter", run_evaluate_segmenter, "score a segmenter on gold EDUs")
    evaluate.add_paths(model="model file", gold="gold EDUs (.discourse.jsonl)")
    evaluate.add_argument("--text", type=Path, help="the same sentences as plain text, to be tokenized and segmented")
    evaluate.add_argument("--lang", help="language of the text; with --text")
    evaluate.add_paths(out="JSON file to write")
    segment = commands.add_command("segment", run_segment, "find the EDUs of a text")
    segment.add_paths(model="model file", text="raw text, one sentence per line")
    segment.add_argument("--lang", required=True, help="language of the text, for its tokenizer")
    segment.add_paths(documents="document index (.documents.tsv)", out=".discourse.jsonl to write")


def _add_parser_commands(commands: CommandParser) -> None:
    train = commands.add_command("train-parser", run_train_parser, "train an RST parser on gold trees")
    train.add_settings("ParserSettings")
    for option in ("--train", "--dev"):
        train.add_argument(option, type=Path, required=True, metavar="PREFIX", help="reads PREFIX.discourse.jsonl")
    train.add_argument("--segmenter", type=Path, help="segmenter model whose word states or syntax the parser reads")
    train.add_argument("--seed", type=int, default=1, help="seed of all random numbers")
    train.add_paths(out="model file to write")
    evaluate = commands.add_command("evaluate-parser", run_evaluate_parser, "score a parser on gold trees")
    evaluate.add_argument("--parser", required=True, help=PARSER_HELP)
    evaluate.add_paths(gold=".discourse.jsonl with trees")
    evaluate.add_argument("--relations", help="inventory whose coarse classes are compared (default: the parser's)")
    evaluate.add_argument("--segmenter", type=Path, help="segmenter model, to score end to end (default: gold EDUs)")
    evaluate.add_argument("--without-paragraphs", action="store_true", help="hide the paragraphs from the parser")
    evaluate.add_argument("--syntax", type=Path, help=".syntax.jsonl, for a linear parser that reads it")
    evaluate.add_argument("--baselines", nargs="*", default=[], metavar="NAME", help="baselines to score as well")
    evaluate.add_paths(out="JSON file to write")
    parse = commands.add_command("parse", run_parse, "parse documents with given EDUs")
    parse.add_argument("--parser", required=True, help=PARSER_HELP)
    parse.add_paths(input=".discourse.jsonl; trees in it are replaced")
    parse.add_argument("--syntax", type=Path, help=".syntax.jsonl, for a linear parser that reads it")
    parse.add_paths(out=".discourse.jsonl to write")


def _add_annotation_commands(commands: CommandParser) -> None:
    annotate = commands.add_command("annotate", run_annotate, "segment and parse the documents of a text")
    annotate.add_paths(segmenter="segmenter model")
    annotate.add_argument("--parser", required=True, help="parser model, or chain, right_branching or flat")
    summary = "sentences, one per line; with --documents, or with a blank line between documents"
    annotate.add_argument("--text", type=Path, help=summary)
    annotate.add_argument("--documents", type=Path, help="document index of the text")
    annotate.add_argument("--suite", type=Path, help="contrastive test set, instead of a text")
    annotate.add_argument("--lang", required=True, help="language of the text")
    summary = "where the tree of sentences comes from: the parser, or each sentence depends on the one before"
    annotate.add_argument("--sentences", choices=SENTENCE_TREES, default=SENTENCE_TREES[0], help=summary)
    annotate.add_argument("--shard", default="1/1", metavar="I/N", help="only the I-th of N parts of the documents")
    annotate.add_paths(out=".discourse.jsonl to write")
    summary = "gather trees under the document ids of a text that was combined from several corpora"
    gather = commands.add_command("gather", run_gather, summary)
    gather.add_argument("--inputs", type=Path, nargs="+", required=True, help=".discourse.jsonl files, in order")
    gather.add_paths(documents="document index of the text", out=".discourse.jsonl to write")


def _add_picture_commands(commands: CommandParser) -> None:
    statistics = commands.add_command("statistics", run_statistics, "count EDUs, trees and relations, one row per name")
    statistics.add_argument("--files", nargs="+", required=True, metavar="NAME=FILE", help=".discourse.jsonl files")
    statistics.add_paths(out="CSV file to write")
    statistics.add_argument("--relations", type=Path, help="CSV file to write with one row per name and relation")
    draw = commands.add_command("draw", run_draw, "draw the tree of a document")
    draw.add_paths(input="file of trees (.discourse.jsonl)")
    which = draw.add_mutually_exclusive_group()
    which.add_argument("--document", help="id of the document")
    which.add_argument("--number", type=int, help="position of the document in the file, from 1 (the default)")
    draw.add_argument("--form", choices=FORMS, default="dependency", help="which tree to draw")
    draw.add_paths(out="SVG file to write")


def run_treebank(options: argparse.Namespace) -> None:
    """Write {split}.discourse.jsonl, {split}.syntax.jsonl and counts.json."""
    from docmt.discourse.treebanks.collection import write_treebank
    from docmt.discourse.treebanks.gcdt import read_gcdt
    from docmt.discourse.treebanks.gum import read_gum
    from docmt.discourse.treebanks.rs3_folder import read_rs3
    from docmt.discourse.treebanks.rst_dt import read_rst_dt

    if (options.format == "rs3") != (options.lang is not None):
        raise UserError("docmt discourse treebank: --format rs3 needs --lang, and no other format takes it")
    if options.lang is not None:
        treebank = read_rs3(options.files, lang=options.lang)
    else:
        treebank = {"gum": read_gum, "gcdt": read_gcdt, "rst_dt": read_rst_dt}[options.format](options.files)
    write_treebank(options.out, treebank)


def run_check_conversion(options: argparse.Namespace) -> None:
    """Print the share of EDUs, and of documents, whose dependency arcs are the published ones."""
    from docmt.discourse.treebanks.checking import check_conversion

    names = {"rs4": "n-ary trees (.rs4)", "dis": "binary trees (.dis)"}
    for source, found in check_conversion(options.files).items():
        print(
            f"{names[source]}: heads {found.n_heads / found.n_edus:.3%}, heads and relations "
            f"{found.n_arcs / found.n_edus:.3%} of {found.n_edus} EDUs; {found.n_equal_documents} of "
            f"{found.n_documents} documents equal; {found.n_secondary_edges} secondary edges skipped, "
            f"{found.n_lifted} crossing edges lifted"
        )


def run_train_segmenter(options: argparse.Namespace) -> None:
    """Train and write a model file."""
    from docmt.discourse.segmentation.training import train_files

    settings = SegmenterSettings.from_argument(options.settings, where="segmenter")
    train_files(train=options.train, dev=options.dev, settings=settings, seed=options.seed, out=options.out)


def run_evaluate_segmenter(options: argparse.Namespace) -> None:
    """Write precision, recall and F1."""
    from docmt.discourse.segmentation.evaluation import evaluate_file, evaluate_text
    from docmt.discourse.segmentation.prediction import Segmenter

    if (options.text is None) != (options.lang is None):
        raise UserError("docmt discourse evaluate-segmenter: --text and --lang belong together")
    segmenter = Segmenter.load(options.model)
    if options.text is None:
        scores = evaluate_file(segmenter, options.gold)
    else:
        scores = evaluate_text(segmenter, options.gold, text=options.text, lang=options.lang)
    facts = {"model": segmenter.trained.provenance, "gold": sha256_file(options.gold)}
    write_json(options.out, {"provenance": describe(**facts), "scores": scores})


def run_segment(options: argparse.Namespace) -> None:
    """Write the words and EDUs of each document."""
    from docmt.discourse.documents import write_discourse
    from docmt.discourse.segmentation.prediction import Segmenter
    from docmt.discourse.segmentation.text import read_texts, segment_texts

    _keep_few_kernels()
    segmenter = Segmenter.load(options.model)
    texts = read_texts(Path(options.text), options.documents)
    documents = segment_texts(texts, lang=options.lang, segmenter=segmenter)
    write_discourse(options.out, progress(documents, label="segment", unit="documents"))


def run_train_parser(options: argparse.Namespace) -> None:
    """Train and write a model file."""
    from docmt.discourse.parsing.model_file import save_parser
    from docmt.discourse.parsing.training import train_files

    _use_one_thread()
    trained = train_files(
        train=options.train,
        dev=options.dev,
        segmenter=options.segmenter,
        settings=ParserSettings.from_argument(options.settings, where="parser"),
        seed=options.seed,
    )
    save_parser(options.out, trained)


def run_evaluate_parser(options: argparse.Namespace) -> None:
    """Write the scores of a parser on a gold file."""
    from docmt.discourse.parsing.baselines import baseline
    from docmt.discourse.parsing.running import OpenedParser, evaluate_file, open_parser
    from docmt.discourse.segmentation.prediction import Segmenter

    _use_one_thread()
    opened = open_parser(options.parser, syntax=options.syntax)
    baselines = {name: OpenedParser(baseline(name), opened.relations) for name in options.baselines}
    how = {
        "relations": options.relations,
        "segmenter": Segmenter.load(options.segmenter) if options.segmenter else None,
        "hide_paragraphs": options.without_paragraphs,
    }
    scores = evaluate_file(opened, options.gold, **how)
    if baselines:
        scores["baselines"] = {name: evaluate_file(opened, options.gold, **how) for name, opened in baselines.items()}
    write_json(options.out, {"parser": options.parser, "gold": str(options.gold), **scores})


def run_parse(options: argparse.Namespace) -> None:
    """Write the documents of a file with trees, in order."""
    from docmt.discourse.documents import iterate_discourse, write_discourse
    from docmt.discourse.parsing.running import open_parser, parse_documents

    _use_one_thread()
    parser = open_parser(options.parser, syntax=options.syntax).parser
    documents = parse_documents(parser, iterate_discourse(options.input))
    write_discourse(options.out, progress(documents, label="parse", unit="documents"))
    log.info("%s", ", ".join(f"{name} {count}" for name, count in sorted(parser.counts.items())))


def run_annotate(options: argparse.Namespace) -> None:
    """Write the trees of a text or of a contrastive test set."""
    from docmt.discourse.annotation import annotate, blank_line_texts, chain_sentences, suite_texts, take_shard
    from docmt.discourse.documents import write_discourse
    from docmt.discourse.parsing.loading import load_parser
    from docmt.discourse.segmentation.prediction import Segmenter
    from docmt.discourse.segmentation.text import read_texts

    _use_one_thread()
    _keep_few_kernels()
    shard, n_shards = _parse_shard(options.shard)
    if (options.suite is None) == (options.text is None) or (options.text is None and options.documents is not None):
        raise UserError("docmt discourse annotate: give --text with --documents or blank lines, or --suite")
    if n_shards > 1 and options.documents is None:
        raise UserError(f"--shard {options.shard}: only a text with --documents is divided")
    segmenter = Segmenter.load(options.segmenter)
    parser = load_parser(options.parser)
    if options.text is None:
        texts = suite_texts(options.suite)
    elif options.documents is None:
        texts = blank_line_texts(options.text)
    else:
        texts = read_texts(options.text, options.documents)
        texts = take_shard(texts, read_index(options.documents), shard=shard, n_shards=n_shards)
    documents = annotate(texts, lang=options.lang, segmenter=segmenter, parser=parser)
    if options.sentences == "chain":
        documents = map(chain_sentences, documents)
    write_discourse(options.out, progress(documents, label="annotate", unit="documents"))
    log.info("%s", ", ".join(f"{name} {count}" for name, count in sorted(parser.counts.items())))


def run_gather(options: argparse.Namespace) -> None:
    """Write the documents of all inputs under the ids of the text."""
    from docmt.discourse.annotation import rename
    from docmt.discourse.documents import write_discourse

    write_discourse(options.out, rename(options.inputs, read_index(options.documents)))


def _keep_few_kernels() -> None:
    """Limit how many kernels oneDNN caches; it makes one per batch shape, and hardly any shape recurs.

    By default it keeps 1,024, which take memory and save no time. Call this before the first kernel is made.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16")


def _use_one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _parse_shard(value: str) -> tuple[int, int]:
    """Parse `I/N`; raise UserError unless 1 ≤ I ≤ N."""
    shard, slash, n_shards = value.partition("/")
    if not (slash and shard.isdecimal() and n_shards.isdecimal() and 1 <= int(shard) <= int(n_shards)):
        raise UserError(f"--shard {value}: write I/N with 1 ≤ I ≤ N")
    return int(shard), int(n_shards)


def run_statistics(options: argparse.Namespace) -> None:
    """Write a table with one row per name and, if asked for, one with the relations of each."""
    import pandas as pd

    from docmt.discourse.documents import iterate_discourse
    from docmt.discourse.statistics import gather_statistics

    files: dict[str, list[Path]] = {}
    for item in options.files:
        name, equals, path = item.partition("=")
        if not (name and equals and path):
            raise UserError(f"--files {item}: write NAME=FILE")
        if Path(path) in files.setdefault(name, []):
            raise UserError(f"--files {item}: duplicate file")
        files[name].append(Path(path))
    rows, relations = [], []
    for name, paths in files.items():
        statistics = gather_statistics(itertools.chain.from_iterable(map(iterate_discourse, paths)))
        rows.append({"name": name} | statistics.row())
        relations += [{"name": name} | row for row in statistics.relation_rows()]
    with atomic_writer(options.out) as file:
        pd.DataFrame(rows).to_csv(file, index=False)
    if options.relations is not None:
        columns = ["name", "relation", "arcs", "percent", "between_sentences_percent"]
        with atomic_writer(options.relations) as file:
            pd.DataFrame(relations, columns=columns).to_csv(file, index=False)


def run_draw(options: argparse.Namespace) -> None:
    """Write one tree as SVG."""
    from docmt.discourse.drawing.constituents import draw_constituents
    from docmt.discourse.drawing.dependencies import draw_dependencies

    draw = {"dependency": draw_dependencies, "constituent": draw_constituents}[options.form]
    picture = draw(_find_document(options.input, document_id=options.document, number=options.number))
    with atomic_writer(options.out) as file:
        file.write(picture)


def _find_document(path: Path, *, document_id: str | None, number: int | None) -> "DiscourseDocument":
    """Find a document by id or, without one, by number; the first one when neither is given."""
    from docmt.discourse.documents import iterate_discourse

    number = 1 if number is None else number
    count, last = 0, ""
    for count, document in enumerate(iterate_discourse(path), start=1):
        if document.id == document_id or (document_id is None and count == number):
            return document
        last = document.id
    wanted = f"number {number}" if document_id is None else repr(document_id)
    found = f"it holds {count}, the last of them {last!r}" if count else "it is empty"
    raise UserError(f"{path}: there is no document {wanted}; {found}")
