"""`docmt discourse`: treebanks, segmenters, parsers, and the trees of a text."""

import itertools
import logging
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, cast

from docmt.batching import take_shard
from docmt.checksums import sha256_file
from docmt.commands import (
    CommandGroup,
    Jobs,
    NumberOfShards,
    OptionalFile,
    OutFile,
    OutFolder,
    Shard,
    check_shard,
    option,
    optional_file,
    settings_at,
)
from docmt.corpora.documents import read_index
from docmt.corpora.suite_items import read_either, read_items
from docmt.discourse.settings import ParserSettings, SegmenterSettings
from docmt.errors import UserError
from docmt.files import atomic_writer, write_json, write_lines
from docmt.logs import progress
from docmt.provenance import describe

log = logging.getLogger(__name__)

commands = CommandGroup("discourse")

Seed = Annotated[int, option("random seed.")]
TextLang = Annotated[str, option("language of the text, for its tokenizer.")]
ParserName = Annotated[str, option("model file, chain, random, isanlp:VERSION or file:PATH.")]


@commands.command
def read_treebank(
    *, format: Literal["gum", "gcdt", "rst_dt", "rs3"], lang: str | None = None, files: Path, out: OutFolder
) -> None:
    """Convert a treebank to {split}.discourse.jsonl, {split}.syntax.jsonl and counts.json.

    Example:
        docmt discourse read-treebank --format rs3 --lang de --files potsdam/ --out treebanks/potsdam

    Args:
        format: treebank.
        lang: language of the text, for the tokenizer. Only with --format rs3.
        files: folder with the files as fetched.
        out: folder to write.
    """
    from docmt.discourse.treebanks.readers import read_gcdt, read_gum, read_rs3, read_rst_dt
    from docmt.discourse.treebanks.treebank import write_treebank

    if (format == "rs3") != (lang is not None):
        raise UserError("docmt discourse read-treebank: pass --lang with --format rs3, and only then")
    if lang is not None:
        write_treebank(out, read_rs3(files, lang=lang))
    else:
        write_treebank(out, {"gum": read_gum, "gcdt": read_gcdt, "rst_dt": read_rst_dt}[format](files))


@commands.command
def train_segmenter(
    *,
    settings: Annotated[SegmenterSettings, settings_at("segmenter")] = SegmenterSettings(),
    train: Path,
    dev: Path,
    seed: Seed,
    out: OutFile,
) -> None:
    """Train an EDU segmenter.

    Example:
        docmt discourse train-segmenter --train gum/train.discourse.jsonl --dev gum/dev.discourse.jsonl --seed 1
        --out segmenter.pt

    Args:
        train: .discourse.jsonl with gold EDUs. If there is a .syntax.jsonl next to it, syntax is read from it.
        dev: validation file, to choose the best epoch.
    """
    from docmt.discourse.segmentation.segmenter import read_examples, syntax_path, train_segmenter

    segmenter = train_segmenter(read_examples(train), read_examples(dev), settings=settings, seed=seed)
    data = {}
    for path in (train, syntax_path(train), dev, syntax_path(dev)):
        if path.exists():
            data[path.name] = sha256_file(path)
    replace(segmenter, provenance=describe(settings=settings.model_dump(), seed=seed, data=data)).save(out)


@commands.command
def evaluate_segmenter(
    *, model: Path, gold: Path, text: Path | None = None, lang: str | None = None, out: OutFile
) -> None:
    """Score an EDU segmenter with precision, recall and F1.

    Example:
        docmt discourse evaluate-segmenter --model segmenter.pt --gold gum/test.discourse.jsonl --out segmenter.json

    Args:
        model: model file.
        gold: gold EDUs (.discourse.jsonl).
        text: the same sentences as plain text, to be tokenized and segmented.
        lang: language of the text. Only with --text.
    """
    from docmt.discourse.evaluation import evaluate_segmenter
    from docmt.discourse.segmentation.segmenter import Segmenter

    if (text is None) != (lang is None):
        raise UserError("docmt discourse evaluate-segmenter: pass both --text and --lang, or neither")
    segmenter = Segmenter.load(model)
    scores = evaluate_segmenter(segmenter, gold, text=text, lang=lang)
    facts = {"model": segmenter.provenance, "gold": sha256_file(gold)}
    write_json(out, {"provenance": describe(**facts), "scores": scores})


@commands.command
def segment(*, model: Path, text: Path, lang: TextLang, documents: Path, out: OutFile) -> None:
    """Segment a text into EDUs.

    Example:
        docmt discourse segment --model segmenter.pt --text talk.en --lang en --documents talk.documents.tsv
        --out talk.edus.jsonl

    Args:
        model: model file.
        text: raw text, one sentence per line.
        documents: document index (.documents.tsv).
    """
    from docmt.discourse.annotation import read_texts, segment_texts
    from docmt.discourse.discourse_documents import write_discourse
    from docmt.discourse.segmentation.segmenter import Segmenter

    _keep_few_kernels()
    segmented = segment_texts(read_texts(text, documents), lang=lang, segmenter=Segmenter.load(model))
    write_discourse(out, progress(segmented, label="segment", unit="documents"))


@commands.command
def train_parser(
    *,
    settings: Annotated[ParserSettings, settings_at("parser")] = ParserSettings(),
    train: Path,
    dev: Path,
    segmenter: Path,
    seed: Seed = 1,
    out: OutFile,
) -> None:
    """Train an RST parser on gold trees.

    Example:
        docmt discourse train-parser --train gum/train.discourse.jsonl --dev gum/dev.discourse.jsonl
        --segmenter segmenter.pt --seed 1 --out parser.pt

    Args:
        train: .discourse.jsonl with gold trees.
        dev: .discourse.jsonl to score.
        segmenter: segmenter model whose word states the parser reads.
    """
    from docmt.discourse.parsing.parser import save_parser
    from docmt.discourse.parsing.training import train_parser

    _use_one_thread()
    save_parser(out, train_parser(train=train, dev=dev, segmenter=segmenter, settings=settings, seed=seed))


@commands.command
def evaluate_parser(
    *,
    parser: ParserName,
    gold: Path,
    relations: str | None = None,
    segmenter: Path | None = None,
    without_paragraphs: bool = False,
    baselines: list[str] | None = None,
    out: OutFile,
) -> None:
    """Score an RST parser on gold trees.

    Example:
        docmt discourse evaluate-parser --parser parser.pt --gold gum/test.discourse.jsonl --baselines chain
        --out parser.json

    Args:
        gold: .discourse.jsonl with trees.
        relations: relation inventory for scoring. Default: the parser's.
        segmenter: segmenter model, for end-to-end scores. Default: gold EDUs.
        without_paragraphs: parse without paragraph boundaries.
        baselines: baselines to score in addition.
    """
    from docmt.discourse.evaluation import evaluate_parser
    from docmt.discourse.other_parsers import baseline
    from docmt.discourse.parsing.parser import load_parser
    from docmt.discourse.segmentation.segmenter import Segmenter

    _use_one_thread()
    opened = load_parser(parser)
    compared = {name: baseline(name) for name in baselines or []}
    edus_from = Segmenter.load(segmenter) if segmenter else None
    how = {"relations": relations or opened.inventory, "segmenter": edus_from, "hide_paragraphs": without_paragraphs}
    scores = evaluate_parser(opened, gold, **how)
    if compared:
        scores["baselines"] = {name: evaluate_parser(other, gold, **how) for name, other in compared.items()}
    write_json(out, {"parser": parser, "gold": str(gold), **scores})


@commands.command
def parse(*, parser: ParserName, input: Path, out: OutFile) -> None:
    """Parse documents that are segmented into EDUs.

    Example:
        docmt discourse parse --parser parser.pt --input talk.edus.jsonl --out talk.discourse.jsonl

    Args:
        input: .discourse.jsonl. Existing trees are replaced.
    """
    from docmt.discourse.discourse_documents import iterate_discourse, write_discourse
    from docmt.discourse.other_parsers import batches
    from docmt.discourse.parsing.parser import load_parser

    _use_one_thread()
    opened = load_parser(parser)
    documents = itertools.chain.from_iterable(map(opened.parse_batch, batches(iterate_discourse(input))))
    write_discourse(out, progress(documents, label="parse", unit="documents"))
    log.info("%s", ", ".join(f"{name} {count}" for name, count in sorted(opened.counts.items())))


@commands.command
def annotate(
    *,
    segmenter: Path,
    parser: ParserName,
    text: Annotated[
        OptionalFile,
        optional_file("text with one sentence per line, and --documents or blank lines between documents."),
    ] = None,
    documents: Annotated[OptionalFile, optional_file("document index of the text.")] = None,
    suite: Annotated[OptionalFile, optional_file("contrastive test set, in place of a text.")] = None,
    lang: TextLang,
    sentences: Literal["parser", "chain"] = "parser",
    shard: Shard = 1,
    n_shards: NumberOfShards = 1,
    out: OutFile,
    jobs: Jobs = 1,
) -> None:
    """Segment and parse the documents of a text or of a contrastive test set.

    Example:
        docmt discourse annotate --segmenter segmenter.pt --parser parser.pt --text talk.txt --lang en
        --out talk.discourse.jsonl --jobs 4

    Args:
        segmenter: segmenter model.
        sentences: tree over sentences, parsed, or a chain (every sentence depends on the preceding one).
    """
    from docmt.discourse import annotation
    from docmt.processes import map_chunks

    _keep_few_kernels()
    check_shard(shard, n_shards)
    if (suite is None) == (text is None) or (suite is not None and documents is not None):
        raise UserError("docmt discourse annotate: pass --text (with --documents or blank lines) or --suite")
    if n_shards > 1 and documents is None:
        raise UserError(f"--n-shards {n_shards}: only a text with --documents can be divided")
    if jobs > 1 and parser.startswith("file:"):
        raise UserError(f"--jobs {jobs}: the trees in {parser} are read in file order, by one process")
    if suite is not None:
        texts = (annotation.PlainText(item.id, list(item.src)) for item in read_items(suite, read_either))
    elif documents is None:
        texts = annotation.blank_line_texts(cast(Path, text))
    else:
        everything = annotation.read_texts(cast(Path, text), documents)
        texts = take_shard(everything, read_index(documents).lengths, shard=shard, n_shards=n_shards)
    annotator = annotation.Annotator(partial(annotation.load_annotators, segmenter, parser), sentences)
    batches = annotation.tokenize_batches(texts, lang=lang)
    counts: Counter[str] = Counter()

    def annotated() -> Iterator[str]:
        for lines, counted in map_chunks(annotator.annotate_chunk, batches, size=1, jobs=jobs):
            counts.update(counted)
            yield from lines

    write_lines(out, progress(annotated(), label="annotate", unit="documents"))
    log.info("%s", ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))


@commands.command
def merge_trees(*, inputs: list[Path], documents: Path, out: OutFile) -> None:
    """Merge the trees of several corpora, with the document ids of the combined text.

    Example:
        docmt discourse merge-trees --inputs a.discourse.jsonl b.discourse.jsonl --documents train.documents.tsv
        --out train.discourse.jsonl

    Args:
        inputs: .discourse.jsonl files, in order.
        documents: document index of the text.
    """
    from docmt.discourse.annotation import rename
    from docmt.discourse.discourse_documents import write_discourse

    write_discourse(out, rename(inputs, read_index(documents)))


@commands.command
def count_trees(
    *,
    files: list[str],
    out: OutFile,
    relations: OutFile | None = None,
) -> None:
    """Count EDUs, trees and relations. Writes a CSV file with one row per name.

    Example:
        docmt discourse count-trees --files train=train.discourse.jsonl --out statistics.csv

    Args:
        files: .discourse.jsonl files, written NAME=FILE. Files with the same name are counted together.
        relations: CSV file to write with one row per name and relation.
    """
    import pandas as pd

    from docmt.discourse.discourse_documents import iterate_discourse
    from docmt.discourse.statistics import gather_statistics

    paths: dict[str, list[Path]] = {}
    for item in files:
        name, equals, path = item.partition("=")
        if not (name and equals and path):
            raise UserError(f"--files {item}: expected NAME=FILE")
        if Path(path) in paths.setdefault(name, []):
            raise UserError(f"--files {item}: duplicate file")
        paths[name].append(Path(path))
    rows = []
    relation_rows = []
    for name, of_name in paths.items():
        counts = gather_statistics(itertools.chain.from_iterable(map(iterate_discourse, of_name)))
        rows.append({"name": name} | counts.row())
        relation_rows += [{"name": name} | row for row in counts.relation_rows()]
    with atomic_writer(out) as file:
        pd.DataFrame(rows).to_csv(file, index=False)
    if relations is not None:
        columns = ["name", "relation", "arcs", "percent", "between_sentences_percent"]
        with atomic_writer(relations) as file:
            pd.DataFrame(relation_rows, columns=columns).to_csv(file, index=False)


def _keep_few_kernels() -> None:
    """Limit the kernel cache of oneDNN, since it has one kernel per batch shape and shapes rarely recur.

    The default of 1,024 kernels takes memory and saves no time. Call this before the first kernel is created.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16")


def _use_one_thread() -> None:
    import torch

    torch.set_num_threads(1)
