"""`docmt evaluate`: score hypotheses and contrastive test sets."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docmt.cli.main import HelpFormatter
from docmt.errors import UserError

if TYPE_CHECKING:
    from docmt.evaluation.hypotheses import Hypothesis
    from docmt.evaluation.settings import EvaluationSettings


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add `bleu`, `pronouns`, `contrast` and `compare`."""
    commands = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")

    bleu = commands.add_parser("bleu", help="BLEU and other metrics of one run", formatter_class=HelpFormatter)
    _add_hypotheses_options(bleu)
    bleu.set_defaults(run=run_bleu)

    pronouns = commands.add_parser(
        "pronouns", help="accuracy of pronouns (APT) of one run, alone", formatter_class=HelpFormatter
    )
    _add_hypotheses_options(pronouns)
    pronouns.add_argument(
        "--alignments",
        type=Path,
        nargs=2,
        metavar=("HYPOTHESES", "REFERENCE"),
        help="word alignments of the source with each (lines of `0-0 1-2`) instead of those of the aligner",
    )
    pronouns.set_defaults(run=run_pronouns)

    contrast = commands.add_parser("contrast", help="contrastive accuracy of one run", formatter_class=HelpFormatter)
    contrast.add_argument("--suite", type=Path, required=True, help="JSONL of contrastive items")
    contrast.add_argument("--log-probabilities", type=Path, required=True, help="JSON of `docmt decode contrast`")
    _add_run_options(contrast)
    contrast.set_defaults(run=run_contrast)

    compare = commands.add_parser(
        "compare", help="paired significance test between systems", formatter_class=HelpFormatter
    )
    _add_text_options(compare)
    compare.add_argument(
        "--hypotheses", nargs="+", required=True, metavar="[NAME=]FILE", help="systems; the first is the baseline"
    )
    compare.add_argument("--test", choices=("bootstrap", "randomisation"), default="bootstrap", help="kind of test")
    compare.add_argument("--samples", type=int, default=1000, help="resamples or trials")
    compare.add_argument("--out", type=Path, help="also write the table to this CSV file")
    compare.set_defaults(run=run_compare)


def _add_hypotheses_options(parser: argparse.ArgumentParser) -> None:
    _add_text_options(parser)
    parser.add_argument("--hypotheses", type=Path, required=True, help="JSONL of `docmt decode translate`")
    parser.add_argument(
        "--training", type=Path, metavar="PREFIX", help="raw parallel text that helps to align words for APT"
    )
    _add_run_options(parser)


def _add_text_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--settings", default="{}", help="EvaluationSettings as JSON or @FILE")
    parser.add_argument("--prefix", type=Path, required=True, help="raw text of the split, as PREFIX.{lang}")
    parser.add_argument("--src-lang", required=True, help="source language")
    parser.add_argument("--tgt-lang", required=True, help="target language")


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    # The rest of the program uses `options.run` for the handler, so the option is stored under another name.
    parser.add_argument(
        "--run",
        dest="run_keys",
        nargs="+",
        required=True,
        metavar="KEY=VALUE",
        help="dataset=… system=… seed=… test=… [fingerprint=…]",
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")


def run_bleu(options: argparse.Namespace) -> None:
    """Score one run on one test set by all metrics of the settings."""
    from docmt.evaluation.bleu import score_hypotheses
    from docmt.evaluation.meteor import score_meteor
    from docmt.evaluation.pronouns import METRIC as APT

    run, settings, hypotheses, reference = _read_run(options)
    rows = score_hypotheses(hypotheses, reference, settings=settings, tgt_lang=options.tgt_lang)
    rows += score_meteor(hypotheses, reference, settings=settings, tgt_lang=options.tgt_lang)
    if APT in settings.metrics:
        rows += _score_pronouns(options, hypotheses, reference, settings=settings)
    _write_run(options, rows, run=run, settings=settings)


def run_pronouns(options: argparse.Namespace) -> None:
    """Score the pronouns of one run on one test set."""
    from docmt.corpora.documents import text_path
    from docmt.evaluation.hypotheses import is_aligned
    from docmt.evaluation.pronouns import score_aligned_pronouns
    from docmt.files import read_lines

    run, settings, hypotheses, reference = _read_run(options)
    if not is_aligned(hypotheses):
        raise UserError(f"{options.hypotheses}: APT needs hypotheses that are aligned by sentences")
    if options.alignments:
        source = read_lines(text_path(options.prefix, options.src_lang))
        languages = {"src_lang": options.src_lang, "tgt_lang": options.tgt_lang}
        rows = score_aligned_pronouns(hypotheses, source, reference, paths=options.alignments, **languages)
    else:
        rows = _score_pronouns(options, hypotheses, reference, settings=settings)
    _write_run(options, rows, run=run, settings=settings)


def _read_run(
    options: argparse.Namespace,
) -> "tuple[dict[str, Any], EvaluationSettings, list[Hypothesis], list[str]]":
    """The keys of the run, the settings, the hypotheses and the reference sentences."""
    from docmt.evaluation.hypotheses import read_hypotheses, read_reference
    from docmt.evaluation.rows import parse_run
    from docmt.evaluation.settings import EvaluationSettings

    run = parse_run(options.run_keys)
    settings = EvaluationSettings.from_argument(options.settings, where="evaluation")
    index, reference = read_reference(options.prefix, src_lang=options.src_lang, tgt_lang=options.tgt_lang)
    return run, settings, read_hypotheses(options.hypotheses, index), reference


def _score_pronouns(
    options: argparse.Namespace,
    hypotheses: "list[Hypothesis]",
    reference: list[str],
    *,
    settings: "EvaluationSettings",
) -> list[dict[str, Any]]:
    from docmt.corpora.documents import text_path
    from docmt.evaluation.pronouns import read_training, score_pronouns
    from docmt.files import read_lines

    languages = {"src_lang": options.src_lang, "tgt_lang": options.tgt_lang}
    training = []
    if options.training:
        training = read_training(options.training, n_sentences=settings.aligner_sentences, **languages)
    source = read_lines(text_path(options.prefix, options.src_lang))
    return score_pronouns(hypotheses, source, reference, settings=settings, training=training, **languages)


def _write_run(
    options: argparse.Namespace, rows: list[dict[str, Any]], *, run: dict[str, Any], settings: "EvaluationSettings"
) -> None:
    from docmt.corpora.documents import index_path, text_path
    from docmt.evaluation.rows import write_scores

    inputs = {
        "hypotheses": options.hypotheses,
        "reference": text_path(options.prefix, options.tgt_lang),
        "documents": index_path(options.prefix),
    }
    write_scores(options.out, rows, run=run, settings=settings.model_dump(), inputs=inputs)


def run_contrast(options: argparse.Namespace) -> None:
    """Score one run on one contrastive test set."""
    from docmt.corpora.contrastive import read_suite
    from docmt.evaluation.contrast import read_log_probabilities, score_contrast
    from docmt.evaluation.rows import parse_run, write_scores

    run = parse_run(options.run_keys)
    items = read_suite(options.suite)
    scores, origin = read_log_probabilities(options.log_probabilities)
    rows = score_contrast(items, scores)
    inputs = {"reference": options.suite, "log_probabilities": options.log_probabilities}
    write_scores(options.out, rows, run=run, settings={}, inputs=inputs, log_probabilities=origin)


def run_compare(options: argparse.Namespace) -> None:
    """Print a table of paired tests against the first system."""
    import pandas as pd
    from tabulate import tabulate

    from docmt.evaluation.hypotheses import read_hypotheses, read_reference
    from docmt.evaluation.settings import EvaluationSettings
    from docmt.evaluation.significance import compare_systems
    from docmt.files import atomic_writer

    settings = EvaluationSettings.from_argument(options.settings, where="evaluation")
    if options.samples < 1:
        raise UserError(f"--samples {options.samples}: at least 1 is needed")
    index, reference = read_reference(options.prefix, src_lang=options.src_lang, tgt_lang=options.tgt_lang)
    systems = {}
    for argument in options.hypotheses:
        name, path = _named_file(argument)
        if name in systems:
            raise UserError(f"--hypotheses {argument}: two systems are called {name!r}; write NAME=FILE")
        systems[name] = read_hypotheses(path, index)
    rows = compare_systems(
        systems,
        reference,
        settings=settings,
        tgt_lang=options.tgt_lang,
        test=options.test,
        n_samples=options.samples,
    )
    table = pd.DataFrame(rows)
    if options.out:
        with atomic_writer(options.out) as file:
            table.to_csv(file, index=False)
    lines = [
        [
            row.system,
            row.metric,
            f"{row.value:.2f}",
            "–" if row.difference is None else f"{row.difference:+.2f}",
            "–" if row.p_value is None else f"{row.p_value:.4f}",
        ]
        for row in rows
    ]
    header = ["system", "metric", "score", "difference", "p"]
    sides = ["left", "left", "right", "right", "right"]
    print(tabulate(lines, header, "simple", colalign=sides, disable_numparse=True))
    for signature in dict.fromkeys(table["signature"]):
        print(signature)


def _named_file(argument: str) -> tuple[str, Path]:
    """Split `NAME=FILE`; a path that exists is a path, even with `=` in it, and is its own name."""
    name, equals, path = argument.partition("=")
    if Path(argument).exists() or not equals:
        return argument, Path(argument)
    return name, Path(path)
