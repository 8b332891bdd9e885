"""`docmt discourse train-segmenter`, `evaluate-segmenter`, `segment`."""

import argparse
from pathlib import Path

from docmt.cli.discourse_annotation import keep_few_kernels
from docmt.cli.main import HelpFormatter


def add_segmenter_commands(commands: argparse._SubParsersAction) -> None:
    """Add `train-segmenter`, `evaluate-segmenter` and `segment` to the commands of `docmt discourse`."""
    summary = "train an EDU segmenter"
    train = commands.add_parser("train-segmenter", help=summary, description=summary, formatter_class=HelpFormatter)
    train.add_argument("--settings", default="{}", help="SegmenterSettings as JSON or @FILE")
    train.add_argument(
        "--train", type=Path, required=True, help="PREFIX of .discourse.jsonl, and of .syntax.jsonl if any"
    )
    train.add_argument("--dev", type=Path, required=True, help="PREFIX on which the best epoch is chosen")
    train.add_argument("--seed", type=int, required=True, help="seed of all random numbers")
    train.add_argument("--out", type=Path, required=True, help="model file to write")
    train.set_defaults(run=run_train)
    summary = "score a segmenter on gold EDUs"
    evaluate = commands.add_parser(
        "evaluate-segmenter", help=summary, description=summary, formatter_class=HelpFormatter
    )
    evaluate.add_argument("--model", type=Path, required=True, help="model file")
    evaluate.add_argument("--gold", type=Path, required=True, help="gold EDUs (.discourse.jsonl)")
    evaluate.add_argument("--text", type=Path, help="the same sentences as plain text, to be tokenized and segmented")
    evaluate.add_argument("--lang", help="language of the text; with --text")
    evaluate.add_argument("--out", type=Path, required=True, help="JSON file to write")
    evaluate.set_defaults(run=run_evaluate)
    summary = "find the EDUs of a text"
    segment = commands.add_parser("segment", help=summary, description=summary, formatter_class=HelpFormatter)
    segment.add_argument("--model", type=Path, required=True, help="model file")
    segment.add_argument("--text", type=Path, required=True, help="raw text, one sentence per line")
    segment.add_argument("--lang", required=True, help="language of the text, for its tokenizer")
    segment.add_argument("--documents", type=Path, required=True, help="document index (.documents.tsv)")
    segment.add_argument("--out", type=Path, required=True, help=".discourse.jsonl to write")
    segment.set_defaults(run=run_segment)


def run_train(options: argparse.Namespace) -> None:
    """Train and write a model file."""
    from docmt.discourse.segmentation.settings import SegmenterSettings
    from docmt.discourse.segmentation.training import train_files

    settings = SegmenterSettings.from_argument(options.settings, where="segmenter")
    train_files(train=options.train, dev=options.dev, settings=settings, seed=options.seed, out=options.out)


def run_evaluate(options: argparse.Namespace) -> None:
    """Write precision, recall and F1."""
    from docmt.discourse.segmentation.evaluation import evaluate_file, evaluate_text
    from docmt.discourse.segmentation.prediction import Segmenter
    from docmt.errors import UserError
    from docmt.files import sha256_file, write_json
    from docmt.provenance import describe

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
    from docmt.logs import progress

    keep_few_kernels()
    segmenter = Segmenter.load(options.model)
    texts = read_texts(options.text, options.documents)
    documents = segment_texts(texts, lang=options.lang, segmenter=segmenter)
    write_discourse(options.out, progress(documents, label="segment", unit="documents"))
