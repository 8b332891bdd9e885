"""`docmt discourse annotate` and `gather`: the trees of a text."""

import argparse
import logging
import os
from pathlib import Path

from docmt.cli.main import HelpFormatter

log = logging.getLogger(__name__)


def add_annotation_commands(commands: argparse._SubParsersAction) -> None:
    """Add `annotate` and `gather`."""
    summary = "segment and parse the documents of a text"
    annotate = commands.add_parser("annotate", help=summary, description=summary, formatter_class=HelpFormatter)
    annotate.add_argument("--segmenter", type=Path, required=True, help="segmenter model")
    annotate.add_argument("--parser", required=True, help="parser model, or chain, right_branching or flat")
    annotate.add_argument("--text", type=Path, help="sentences, one per line; with --documents")
    annotate.add_argument("--documents", type=Path, help="document index of the text")
    annotate.add_argument("--suite", type=Path, help="contrastive test set, instead of a text")
    annotate.add_argument("--lang", required=True, help="language of the text")
    annotate.add_argument("--shard", default="1/1", metavar="I/N", help="only the I-th of N parts of the documents")
    annotate.add_argument("--out", type=Path, required=True, help=".discourse.jsonl to write")
    annotate.set_defaults(run=run_annotate)
    summary = "gather trees under the document ids of a text that was combined from several corpora"
    gather = commands.add_parser("gather", help=summary, description=summary, formatter_class=HelpFormatter)
    gather.add_argument("--inputs", type=Path, nargs="+", required=True, help=".discourse.jsonl files, in order")
    gather.add_argument("--documents", type=Path, required=True, help="document index of the text")
    gather.add_argument("--out", type=Path, required=True, help=".discourse.jsonl to write")
    gather.set_defaults(run=run_gather)


def keep_few_kernels() -> None:
    """Limit how many kernels oneDNN caches; it makes one per batch shape, and hardly any shape recurs.

    By default it keeps 1,024, which take memory and save no time. Call this before the first kernel is made.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16")


def run_annotate(options: argparse.Namespace) -> None:
    """Write the trees of a text or of a contrastive test set."""
    import torch

    from docmt.corpora.documents import read_index
    from docmt.discourse.annotation import annotate, suite_texts, take_shard
    from docmt.discourse.documents import write_discourse
    from docmt.discourse.parsing.loading import load_parser
    from docmt.discourse.segmentation.prediction import Segmenter
    from docmt.discourse.segmentation.text import read_texts
    from docmt.errors import UserError
    from docmt.logs import progress

    torch.set_num_threads(1)
    keep_few_kernels()
    shard, n_shards = parse_shard(options.shard)
    if (options.suite is None) == (options.text is None) or (options.text is None) != (options.documents is None):
        raise UserError("docmt discourse annotate: give --text with --documents, or --suite")
    segmenter = Segmenter.load(options.segmenter)
    parser = load_parser(options.parser)
    if options.suite is not None:
        texts = suite_texts(options.suite)
    else:
        texts = read_texts(options.text, options.documents)
        texts = take_shard(texts, read_index(options.documents), shard=shard, n_shards=n_shards)
    documents = annotate(texts, lang=options.lang, segmenter=segmenter, parser=parser)
    write_discourse(options.out, progress(documents, label="annotate", unit="documents"))
    log.info("%s", ", ".join(f"{name} {count}" for name, count in sorted(parser.counts.items())))


def run_gather(options: argparse.Namespace) -> None:
    """Write the documents of all inputs under the ids of the text."""
    from docmt.corpora.documents import read_index
    from docmt.discourse.annotation import rename
    from docmt.discourse.documents import write_discourse

    write_discourse(options.out, rename(options.inputs, read_index(options.documents)))


def parse_shard(value: str) -> tuple[int, int]:
    """Parse `I/N`; raise UserError unless 1 ≤ I ≤ N."""
    from docmt.errors import UserError

    shard, slash, n_shards = value.partition("/")
    if not (slash and shard.isdecimal() and n_shards.isdecimal() and 1 <= int(shard) <= int(n_shards)):
        raise UserError(f"--shard {value}: write I/N with 1 ≤ I ≤ N")
    return int(shard), int(n_shards)
