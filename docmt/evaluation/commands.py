"""`docmt evaluate`: score hypotheses, test sets and context use, and test differences for significance."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from docmt import provenance
from docmt.commands import CommandGroup, OutFile, SrcLang, TgtLang, Threads, option, settings_at, written
from docmt.corpora.documents import index_path, read_documents, read_index, text_path
from docmt.corpora.suite_items import ContrastiveItem, GenerativeItem, read_generative_suite, read_suite
from docmt.decoding.commands import Device, ModelFile, choose_device
from docmt.decoding.settings import DecodingSettings
from docmt.errors import UserError, escape_controls
from docmt.evaluation.contrastive_accuracy import (
    is_right,
    read_log_probabilities,
    read_user_log_probabilities,
    score_contrast,
)
from docmt.evaluation.hypotheses import find_tokenization, read_hypotheses, read_user_hypotheses
from docmt.evaluation.metrics import (
    ACCURACY,
    ALIGNER,
    GENERATIVE,
    MODEL,
    ContrastSettings,
    EvaluationSettings,
    Ties,
    find_metric,
    score_translations,
)
from docmt.evaluation.option_groups import ScoredRun, StudyTest, TestName, Tests, TestText
from docmt.evaluation.references import read_user_references
from docmt.evaluation.score_rows import WARNING, ScoreRow, TestScores, write_scores
from docmt.evaluation.scoring import TranslatedTest
from docmt.files import atomic_writer, sha256_file, write_json, write_jsonl

log = logging.getLogger(__name__)
commands = CommandGroup("evaluate")

Settings = Annotated[EvaluationSettings, settings_at("evaluation")]
ContrastiveSuite = Annotated[Path, option("contrastive test set (JSON lines).")]


@commands.command
def run(
    *,
    settings: Settings = EvaluationSettings(),
    tests: Tests,
    src_lang: SrcLang,
    tgt_lang: TgtLang,
    training: Path | None = None,
    run: ScoredRun,
    out: OutFile,
) -> None:
    """Score one run on test sets, contrastive and generative suites.

    Example:
        docmt evaluate run --tests '[{"test":"talks","prefix":"text/test","outputs":["talks.jsonl"]}]' --src-lang en
        --tgt-lang de --dataset ende --system mine --seed 1 --out scores.json

    Args:
        training: raw parallel text prefix, to improve the word alignment for APT.
    """
    _refuse_unused(settings, contrast=["ties"])
    scores = []
    for test in tests:
        if len(test.outputs) > 1:
            raise UserError(f"--tests: {test.test}: {len(test.outputs)} outputs: pass the output of one run")
        if test.prefix is not None:
            text = _text_of(test, src_lang, tgt_lang)
            (translated,) = _read_translations(settings, text, test.outputs, training)
            scores.append(_translation_scores(test.test, text, test.outputs[0], translated, score_translations))
        elif test.contrastive is not None:
            scores.append(_contrastive_scores(test, settings.contrast.ties))
        else:
            scores.append(_generative_scores(test, tgt_lang))
    write_scores(out, scores, run=vars(run), settings=settings.model_dump())


def _refuse_unused(settings: EvaluationSettings, *, contrast: Sequence[str]) -> None:
    """Raise UserError for keys that a command does not read. Of the section `contrast`, it reads the listed keys."""
    if settings.comet is not None:
        raise UserError("--settings: comet: COMET is computed by `docmt evaluate comet`; remove this key")
    if unused := sorted(settings.contrast.model_fields_set - {*contrast}):
        reason = "is used by `docmt decode score-candidates`" if contrast else "applies to contrastive test sets"
        raise UserError(f"--settings: contrast.{unused[0]}: {reason}; remove this key")


def _text_of(test: StudyTest, src_lang: str, tgt_lang: str) -> TestText:
    references = [Path(path) for path in test.references]
    return TestText(prefix=Path(test.prefix or ""), src_lang=src_lang, tgt_lang=tgt_lang, references=references)


def _read_translations(
    settings: EvaluationSettings, text: TestText, hypotheses: Sequence[str | Path], training: Path | None = None
) -> list[TranslatedTest]:
    index, reference, more = text.read()
    places = {"prefix": text.prefix, "src_lang": text.src_lang, "tgt_lang": text.tgt_lang, "training": training}
    return [
        TranslatedTest(read_hypotheses(Path(path), index), reference, settings, more_references=more, **places)
        for path in hypotheses
    ]


def _translation_scores(
    name: str, text: TestText, hypotheses: str | Path, test: TranslatedTest, score: Callable[..., list[ScoreRow]]
) -> TestScores:
    rows = score(test)
    if problem := find_tokenization(test.sentences, test.reference):
        log.warning("%s: %s: detokenize them, as the reference is", hypotheses, problem)
        for row in rows:
            if row["value"] is not None:
                row["signature"] += f"|{WARNING}{problem}"
    inputs = {"hypotheses": Path(hypotheses), "reference": text_path(text.prefix, text.tgt_lang)}
    inputs["documents"] = index_path(text.prefix)
    inputs |= {f"reference {number}": path for number, path in enumerate(text.references or [], start=2)}
    return TestScores(name, rows, inputs)


def _contrastive_scores(test: StudyTest, ties: Ties) -> TestScores:
    suite, path = test.suite(), Path(test.outputs[0])
    scores, origin = read_log_probabilities(path)
    if origin.get("suite") not in (None, sha256_file(suite)):
        raise UserError(f"{path}: computed on a different version of {suite}: compute it again")
    where = f"{path}: provenance.contrast"
    rules = ContrastSettings.load({**origin.get("contrast", {}), "ties": ties}, where=where)
    rows = score_contrast(read_suite(suite), scores, rules)
    return TestScores(test.test, rows, {"reference": suite, "log_probabilities": path}, {"decoding": origin})


def _generative_scores(test: StudyTest, tgt_lang: str) -> TestScores:
    from docmt.evaluation.generative_accuracy import read_payloads, score_generation

    suite, path = test.suite(), Path(test.outputs[0])
    items = read_generative_suite(suite)
    rows = score_generation(items, read_payloads(path, items), lang=tgt_lang)
    return TestScores(test.test, rows, {"reference": suite, "translations": path})


@commands.command
def comet(
    *,
    settings: Settings = EvaluationSettings(),
    text: TestText,
    hypotheses: Annotated[Path, option("JSONL of `docmt decode translate`.")],
    run: ScoredRun,
    test: TestName,
    out: OutFile,
) -> None:
    """Score one run with COMET, which can be installed in another environment.

    Example:
        docmt evaluate comet --settings @comet.json --prefix text/test --src-lang en --tgt-lang de
        --hypotheses hypotheses.jsonl --dataset ende --system mine --seed 1 --test talks --out comet.json
    """
    from docmt.evaluation.comet import claim_device, score_comet

    if settings.comet is None:
        raise UserError("evaluation.comet: set its checkpoint in --settings")
    (translated,) = _read_translations(settings, text, [hypotheses])
    meter = claim_device(settings.comet)
    scores = _translation_scores(test, text, hypotheses, translated, partial(score_comet, settings=settings.comet))
    write_scores(out, [scores], run=vars(run), settings=settings.model_dump(), **meter.facts())


@commands.command
def cxmi(
    *,
    settings: Annotated[DecodingSettings, settings_at("decoding")] = DecodingSettings(),
    model: ModelFile,
    prefix: Path | None = None,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    suite: Path | None = None,
    discourse: list[Path] | None = None,
    run: ScoredRun,
    test: TestName,
    out: OutFile,
    threads: Threads = 1,
    device: Device = "auto",
) -> None:
    """Compute reference log probabilities, and their gain from context (CXMI).

    Example:
        docmt evaluate cxmi --suite deixis.jsonl --model model.pt --dataset enru --system mine --seed 1 --test deixis
        --out cxmi.json

    Args:
        prefix: raw text, as PREFIX.{lang}.
        src_lang: source language. Only with --prefix.
        tgt_lang: target language. Only with --prefix.
        suite: contrastive test set, in place of --prefix. The last sentence in every correct candidate is scored.
        discourse: source document trees.
    """
    if (prefix is None) == (suite is None):
        raise UserError("docmt evaluate cxmi: pass either --prefix or --suite")
    chosen = choose_device(device, threads)
    import numpy as np

    from docmt.decoding.contrastive_scoring import Candidate, TargetScorer
    from docmt.discourse.discourse_documents import read_discourse
    from docmt.evaluation.cxmi import mean_row, score_references, suite_rows
    from docmt.models.gpus import DeviceMeter
    from docmt.models.model_file import load_model

    meter = DeviceMeter(chosen)
    # As in contrastive scoring: differences are smaller than rounding errors in half precision.
    exact = settings.model_copy(update={"precision": "float32"})
    scorer = TargetScorer(load_model(model), exact, device=chosen)
    trees = [document for file in discourse for document in read_discourse(file)] if discourse else None
    if suite is not None:
        reference, items = suite, read_suite(suite)
        right = [Candidate(item.src, item.candidates[item.correct], is_prefix=item.is_prefix) for item in items]
        rows = suite_rows(items, score_references([item.id for item in items], right, scorer, trees))
    else:
        if prefix is None or src_lang is None or tgt_lang is None:
            raise UserError("--prefix: also pass --src-lang and --tgt-lang")
        reference = text_path(prefix, tgt_lang)
        texts = read_documents(prefix, languages=(src_lang, tgt_lang))
        references = [Candidate(text.src, text.tgt) for text in texts]
        scores = score_references([text.id for text in texts], references, scorer, trees)
        rows = [mean_row(metric, np.concatenate(values)) for metric, values in scores.items()]
    scores = TestScores(test, rows, {"model": model, "reference": reference})
    write_scores(out, [scores], run=vars(run), settings=settings.model_dump(), **meter.facts())


@commands.command
def import_output(
    *, file: Path, prefix: Path | None = None, suite: ContrastiveSuite | None = None, out: OutFile
) -> None:
    """Import an external system's translations or candidate scores.

    Example:
        docmt evaluate import-output --file theirs.de --prefix text/test --out hypotheses.jsonl

    Args:
        file: translations, with a line per sentence or per document, or JSONL from `docmt decode translate`. For a
            suite, a line per item with the candidate scores, or JSON from `docmt decode score-candidates`.
        prefix: raw text, as PREFIX.{lang}.
    """
    if prefix is not None and suite is None:
        hypotheses = read_user_hypotheses(file, read_index(index_path(prefix)))
        write_jsonl(out, (hypothesis.model_dump() for hypothesis in hypotheses))
    elif suite is not None and prefix is None:
        items = read_user_log_probabilities(file, read_suite(suite))
        described = provenance.describe(settings={}, suite=sha256_file(suite), scores=sha256_file(file))
        write_json(out, {"items": items, "provenance": described})
    else:
        raise UserError("docmt evaluate import-output: pass either --prefix or --suite")


@commands.command
def compare(
    *,
    settings: Settings = EvaluationSettings(metrics=["s-BLEU", "d-BLEU (documents)", "chrF"]),
    references: list[Path],
    tgt_lang: TgtLang,
    src_lang: str = "",
    training: Path | None = None,
    hypotheses: list[str],
    out: Annotated[Path | None, written("CSV file to write, in addition to printing.")] = None,
) -> None:
    """Score and compare translation files, with significance tests.

    Example:
        docmt evaluate compare --references test.de --tgt-lang de --hypotheses service=service.de llm=llm.de

    Args:
        references: text with a line per sentence, and blank lines between documents or PREFIX.documents.tsv next to it.
            Several files are multiple references.
        src_lang: source language, for metrics that read the source (PREFIX.{lang} next to the first reference).
        training: raw parallel text prefix, to improve word alignments.
        hypotheses: translations, written FILE or NAME=FILE, with the baseline first. A file has one line per reference
            line, per sentence or per document, or is JSONL from `docmt decode translate`.
    """
    from docmt.evaluation.significance import compare_systems

    _refuse_unused(settings, contrast=[])
    for metric in settings.metrics:
        needs = find_metric(metric).needs
        if MODEL in needs:
            raise UserError(f"--settings: metrics: {metric!r} needs the model and can only be computed in a study")
        if not src_lang and ALIGNER in needs:
            raise UserError(f"--settings: metrics: {metric!r} reads the source: pass its language with --src-lang")
    paths = _name_systems(hypotheses)
    index, (reference, *more), blank = read_user_references(references)
    if len(index.ids) == 1:
        log.warning("%s: only one document (by blank lines or documents.tsv): d-BLEU cannot be tested", references[0])
    systems, prefix = {}, references[0].with_suffix("")
    for name, path in paths.items():
        translations = read_user_hypotheses(path, index, blank)
        systems[name] = TranslatedTest(translations, reference, settings, prefix, src_lang, tgt_lang, training, more)
        if problem := find_tokenization(systems[name].sentences, reference):
            log.warning("%s: %s: detokenize them, as the reference is", path, problem)
    rows = compare_systems(systems)
    if out:
        import pandas as pd

        with atomic_writer(out, checksum=False) as file:  # the user's folder
            pd.DataFrame(rows).to_csv(file, index=False)
    _print_comparison(rows)


def _name_systems(arguments: list[str]) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    for argument in arguments:
        # An existing path is a FILE, even with `=` in it.
        name, equals, path = argument.partition("=")
        if Path(argument).exists() or not equals:
            name = path = argument
        if name in paths:
            raise UserError(f"--hypotheses {argument}: two systems are called {name!r}: pass NAME=FILE")
        paths[name] = Path(path)
    return paths


def _print_comparison(rows: list[dict[str, Any]]) -> None:
    from tabulate import tabulate

    headers = ["system", "metric", "score", "± (95 %)", "difference", "± (95 %)", "p", "p (randomization)"]
    forms = {"score": ".2f", "score_half_width": ".2f", "difference": "+.2f", "half_width": ".2f"}
    forms |= {"p": ".4f", "randomization_p": ".4f"}
    lines = []
    for row in rows:
        numbers = ["–" if row[key] is None else format(row[key], form) for key, form in forms.items()]
        lines.append([escape_controls(row["system"]), row["metric"], *numbers])
    # Otherwise, tabulate would parse numbers and drop trailing zeros.
    aligned = ["left"] * 2 + ["right"] * 6
    print(tabulate(lines, headers, tablefmt="simple", colalign=aligned, disable_numparse=True))
    for metric, signature in dict.fromkeys((row["metric"], row["signature"]) for row in rows):
        print(f"{metric}: {signature}")


@commands.command
def difference(
    *,
    settings: Settings = EvaluationSettings(),
    tests: Tests,
    src_lang: SrcLang,
    tgt_lang: TgtLang,
    dataset: Annotated[str, option("name of the dataset.")],
    names: Annotated[tuple[str, str], option("names of the system and of the baseline.")],
    out: OutFile,
) -> None:
    """Test a system against a baseline on test sets and suites, over all seeds.

    Example:
        docmt evaluate difference
        --tests '[{"test":"t","prefix":"test","outputs":["b.jsonl"],"baseline":["a.jsonl"]}]'
        --src-lang en --tgt-lang de --dataset ende --names mine baseline --out differences.json
    """
    from docmt.evaluation.significance import compare_translations, compare_verdicts

    _refuse_unused(settings, contrast=["ties"])
    rows = []
    for test in tests:
        if not test.baseline:
            raise UserError(f"--tests: {test.test}: also pass the outputs of the baseline")
        if test.prefix is not None:
            text = _text_of(test, src_lang, tgt_lang)
            translated = _read_translations(settings, text, [*test.outputs, *test.baseline])
            n_ours = len(test.outputs)
            differences = compare_translations(translated[:n_ours], translated[n_ours:])
        else:
            metric, items, judge = _read_judged(test, settings.contrast.ties, tgt_lang)
            ours, theirs = ([judge(Path(path)) for path in paths] for paths in (test.outputs, test.baseline))
            differences = compare_verdicts(metric, [item.phenomenon for item in items], ours, theirs)
        keys = {"dataset": dataset, "test": test.test, "system": names[0], "baseline": names[1]}
        rows += [keys | vars(tested) for tested in differences]
    described = provenance.describe_result(settings=settings.model_dump())
    write_json(out, {"provenance": described, "differences": rows})


def _read_judged(
    test: StudyTest, ties: Ties, tgt_lang: str
) -> tuple[str, Sequence[ContrastiveItem | GenerativeItem], Callable[[Path], list[bool]]]:
    """Return a suite's metric and items, and a function from an output file to True per correct item."""
    if test.contrastive is not None:
        pairs = read_suite(test.suite())

        def judge(path: Path) -> list[bool]:
            scores, _ = read_log_probabilities(path)
            return [is_right(item, scores, ties=ties) for item in pairs]

        return ACCURACY, pairs, judge
    from docmt.evaluation.generative_accuracy import match_expected, read_payloads

    items = read_generative_suite(test.suite())
    return GENERATIVE, items, lambda path: match_expected(items, read_payloads(path, items), lang=tgt_lang)
