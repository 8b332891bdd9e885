"""`docmt discourse train-parser`, `evaluate-parser` and `parse`."""

import argparse
import logging
from pathlib import Path

from docmt.cli.main import HelpFormatter

log = logging.getLogger(__name__)

PARSER_HELP = "model file, chain, flat, right_branching, sentence_branching, …, isanlp:VERSION or file:PATH"


def add_parser_commands(commands: argparse._SubParsersAction) -> None:
    """Add `train-parser`, `evaluate-parser` and `parse`."""
    summary = "train an RST parser on gold trees"
    train = commands.add_parser("train-parser", help=summary, description=summary, formatter_class=HelpFormatter)
    train.add_argument("--settings", default="{}", help="ParserSettings as JSON or @FILE")
    train.add_argument("--train", type=Path, required=True, metavar="PREFIX", help="reads PREFIX.discourse.jsonl")
    train.add_argument("--dev", type=Path, required=True, metavar="PREFIX", help="reads PREFIX.discourse.jsonl")
    train.add_argument("--segmenter", type=Path, help="segmenter model whose word states or syntax the parser reads")
    train.add_argument("--seed", type=int, default=1, help="seed of all random numbers")
    train.add_argument("--out", type=Path, required=True, help="model file to write")
    train.set_defaults(run=run_train)
    summary = "score a parser on gold trees"
    evaluate = commands.add_parser("evaluate-parser", help=summary, description=summary, formatter_class=HelpFormatter)
    evaluate.add_argument("--parser", required=True, help=PARSER_HELP)
    evaluate.add_argument("--gold", type=Path, required=True, help=".discourse.jsonl with trees")
    evaluate.add_argument("--relations", help="inventory whose coarse classes are compared (default: the parser's)")
    evaluate.add_argument("--segmenter", type=Path, help="segmenter model, to score end to end (default: gold EDUs)")
    evaluate.add_argument("--without-paragraphs", action="store_true", help="hide the paragraphs from the parser")
    evaluate.add_argument("--syntax", type=Path, help=".syntax.jsonl, for a linear parser that reads it")
    evaluate.add_argument("--baselines", nargs="*", default=[], metavar="NAME", help="baselines to score as well")
    evaluate.add_argument("--out", type=Path, required=True, help="JSON file to write")
    evaluate.set_defaults(run=run_evaluate)
    summary = "parse documents with given EDUs"
    parse = commands.add_parser("parse", help=summary, description=summary, formatter_class=HelpFormatter)
    parse.add_argument("--parser", required=True, help=PARSER_HELP)
    parse.add_argument("--input", type=Path, required=True, help=".discourse.jsonl; trees in it are replaced")
    parse.add_argument("--syntax", type=Path, help=".syntax.jsonl, for a linear parser that reads it")
    parse.add_argument("--out", type=Path, required=True, help=".discourse.jsonl to write")
    parse.set_defaults(run=run_parse)


def run_train(options: argparse.Namespace) -> None:
    """Train and write a model file."""
    import torch

    from docmt.discourse.parsing.model_file import save_parser
    from docmt.discourse.parsing.settings import ParserSettings
    from docmt.discourse.parsing.training import train_files

    torch.set_num_threads(1)
    trained = train_files(
        train=options.train,
        dev=options.dev,
        segmenter=options.segmenter,
        settings=ParserSettings.from_argument(options.settings, where="parser"),
        seed=options.seed,
    )
    save_parser(options.out, trained)


def run_evaluate(options: argparse.Namespace) -> None:
    """Write the scores of a parser on a gold file."""
    import torch

    from docmt.discourse.parsing.baselines import baseline
    from docmt.discourse.parsing.running import OpenedParser, evaluate_file, open_parser
    from docmt.discourse.segmentation.prediction import Segmenter
    from docmt.files import write_json

    torch.set_num_threads(1)
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
    import torch

    from docmt.discourse.documents import iterate_discourse, write_discourse
    from docmt.discourse.parsing.running import open_parser, parse_documents
    from docmt.logs import progress

    torch.set_num_threads(1)
    parser = open_parser(options.parser, syntax=options.syntax).parser
    documents = parse_documents(parser, iterate_discourse(options.input))
    write_discourse(options.out, progress(documents, label="parse", unit="documents"))
    log.info("%s", ", ".join(f"{name} {count}" for name, count in sorted(parser.counts.items())))
