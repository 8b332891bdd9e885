"""`docmt evaluate`: score hypotheses, test sets and context use, and test differences for significance."""

import itertools
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from docmt import provenance
from docmt.checksums import sha256_file
from docmt.commands import (
    CommandGroup,
    ModelFingerprint,
    OutFile,
    SrcLang,
    TgtLang,
    Threads,
    option,
    settings_at,
)
from docmt.corpora.documents import index_path, read_documents, single_prefix, text_path
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
from docmt.evaluation.hypotheses import (
    describe_realignment,
    find_tokenization,
    read_hypotheses,
    read_user_hypotheses,
)
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
from docmt.evaluation.option_groups import Fingerprint, Outputs, ScoredRun, SuiteFile, TestFiles, TestName, TextFiles
from docmt.evaluation.output_files import TestOutputs, match_outputs
from docmt.evaluation.references import read_more_references, read_reference, read_user_references
from docmt.evaluation.score_rows import WARNING, ScoreRow, TestScores, write_scores
from docmt.evaluation.scoring import TranslatedTest
from docmt.evaluation.segment_scores import read_metric_scores
from docmt.files import atomic_writer, write_json, write_jsonl

log = logging.getLogger(__name__)
commands = CommandGroup("evaluate")

Settings = Annotated[EvaluationSettings, settings_at("evaluation")]


@commands.command
def run(
    *,
    settings: Settings = EvaluationSettings(),
    outputs: Outputs,
    tests: TestFiles,
    training: TextFiles | None = None,
    run: ScoredRun,
    fingerprint: Fingerprint = None,
    out: OutFile,
) -> None:
    """Score one run on test sets, contrastive and generative suites.

    Example:
        docmt evaluate run --outputs test_talks.jsonl --texts text/test_talks.en text/test_talks.de
        text/test_talks.documents.tsv --src-lang en --tgt-lang de --dataset ende --system mine --seed 1
        --out scores.json

    Args:
        training: raw parallel training text, to improve the word alignment for APT. Files as in --texts.
    """
    from docmt.evaluation.generative_accuracy import read_payloads, score_generation

    _refuse_unused(settings, contrast=["ties"])
    aligned_with = single_prefix(training, option="--training") if training else None
    scores = []
    for test in match_outputs(outputs, tests):
        if len(test.outputs) > 1:
            raise UserError(f"{test.outputs[1]}: {test.outputs[0]} is on the same test: pass the output of one run")
        if test.kind == "test":
            (translated,) = _read_translations(test, settings, aligned_with)
            scores.append(_translation_scores(test, translated, score_translations))
        elif test.kind == "suite":
            scores.append(_contrastive_scores(test, settings.contrast.ties))
        else:
            items = read_generative_suite(test.file)
            rows = score_generation(items, read_payloads(test.outputs[0], items), lang=test.languages[1])
            inputs = {"reference": test.file, "translations": test.outputs[0]}
            scores.append(TestScores(test.name, rows, inputs))
    write_scores(out, scores, run=vars(run), settings=settings.model_dump(), fingerprint=fingerprint)


def _refuse_unused(settings: EvaluationSettings, *, contrast: Sequence[str]) -> None:
    """Raise UserError for keys that a command does not read. Of the section `contrast`, it reads the listed keys."""
    if settings.comet is not None:
        raise UserError("--settings: comet: COMET is computed by `docmt evaluate comet`; remove this key")
    if settings.external:
        raise UserError("--settings: external: only applies to studies; remove this key")
    unused = sorted(settings.contrast.model_fields_set - {*contrast})
    if unused:
        reason = "is used by `docmt decode score-candidates`" if contrast else "applies to contrastive test sets"
        raise UserError(f"--settings: contrast.{unused[0]}: {reason}; remove this key")


def _read_translations(
    test: TestOutputs, settings: EvaluationSettings, training: Path | None = None
) -> list[TranslatedTest]:
    """Read the translations of all seeds, then of the baseline."""
    src_lang, tgt_lang = test.languages
    index, reference = read_reference(test.file, languages=test.languages)
    more = read_more_references(test.references, index, reference)
    text = (reference, settings, test.file, src_lang, tgt_lang, training, more)
    outputs = [*test.outputs, *test.baseline]
    external = {}
    for metric, files in test.external.items():
        scored_files = list(zip(map(str, outputs), files, strict=True))
        external[metric] = read_metric_scores(metric, scored_files, index)
    translated = []
    for number, path in enumerate(outputs):
        scores = {metric: parts[number] for metric, parts in external.items()}
        translated.append(TranslatedTest(read_hypotheses(path, index), *text, scores))
    return translated


def _translation_scores(
    test: TestOutputs, translated: TranslatedTest, score: Callable[..., list[ScoreRow]]
) -> TestScores:
    rows = score(translated)
    hypotheses = test.outputs[0]
    problem = find_tokenization(translated.hypotheses, translated.reference)
    if problem:
        log.warning("%s: %s: detokenize them, as the reference is", hypotheses, problem)
    for remark in filter(None, (problem, describe_realignment(translated.hypotheses))):
        for row in rows:
            if row["value"] is not None:
                row["signature"] += f"|{WARNING}{remark}"
    inputs = {
        "hypotheses": hypotheses,
        "reference": text_path(test.file, test.languages[1]),
        "documents": index_path(test.file),
    }
    for number, path in enumerate(test.references, start=2):
        inputs[f"reference {number}"] = path
    for metric, (path,) in test.external.items():
        inputs[f"scores of {metric}"] = path
    return TestScores(test.name, rows, inputs)


def _contrastive_scores(test: TestOutputs, ties: Ties) -> TestScores:
    path = test.outputs[0]
    scores, origin = read_log_probabilities(path)
    if origin.get("suite") not in (None, sha256_file(test.file)):
        raise UserError(f"{path}: computed on a different version of {test.file}: compute it again")
    where = f"{path}: provenance.contrast"
    rules = ContrastSettings.load({**origin.get("contrast", {}), "ties": ties}, where=where)
    rows = score_contrast(read_suite(test.file), scores, rules)
    return TestScores(test.name, rows, {"reference": test.file, "log_probabilities": path}, {"decoding": origin})


@commands.command
def comet(
    *,
    settings: Settings = EvaluationSettings(),
    texts: TextFiles,
    src_lang: SrcLang,
    tgt_lang: TgtLang,
    hypotheses: Annotated[Path, option("JSONL of `docmt decode translate`.")],
    run: ScoredRun,
    test: TestName,
    fingerprint: Fingerprint = None,
    out: OutFile,
) -> None:
    """Score one run with COMET, which can be installed in another environment.

    Example:
        docmt evaluate comet --settings @comet.json --texts test.en test.de test.documents.tsv --src-lang en
        --tgt-lang de --hypotheses hypotheses.jsonl --dataset ende --system mine --seed 1 --test talks --out comet.json
    """
    from docmt.evaluation.comet import claim_device, score_comet

    if settings.comet is None:
        raise UserError("evaluation.comet: set its checkpoint in --settings")
    scored = TestOutputs("test", test, single_prefix(texts, option="--texts"), (src_lang, tgt_lang), [hypotheses])
    (translated,) = _read_translations(scored, settings)
    meter = claim_device(settings.comet)
    scores = _translation_scores(scored, translated, partial(score_comet, settings=settings.comet))
    facts = {"settings": settings.model_dump(), "fingerprint": fingerprint, **meter.facts()}
    write_scores(out, [scores], run=vars(run), **facts)


@commands.command
def cxmi(
    *,
    settings: Annotated[DecodingSettings, settings_at("decoding")] = DecodingSettings(),
    model: ModelFile,
    model_fingerprint: ModelFingerprint = None,
    texts: TextFiles | None = None,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    suite: SuiteFile = None,
    discourse: list[Path] | None = None,
    run: ScoredRun,
    test: TestName,
    fingerprint: Fingerprint = None,
    out: OutFile,
    threads: Threads = 1,
    device: Device = "auto",
) -> None:
    """Compute reference log probabilities, and their gain from context (CXMI).

    Example:
        docmt evaluate cxmi --suite deixis.jsonl --model model.pt --dataset enru --system mine --seed 1 --test deixis
        --out cxmi.json

    Args:
        src_lang: source language. Only with --texts.
        tgt_lang: target language. Only with --texts.
        suite: contrastive test set, in place of --texts. The last sentence in every correct candidate is scored.
        discourse: source document trees.
    """
    prefix = _prefix_unless_suite(texts, suite, command="cxmi")
    torch_device = choose_device(device, threads)
    import numpy as np

    from docmt.decoding.contrastive_scoring import Candidate, TargetScorer
    from docmt.discourse.discourse_documents import read_discourse
    from docmt.evaluation.cxmi import mean_row, score_references, suite_rows
    from docmt.models.gpus import DeviceMeter
    from docmt.models.model_file import load_model

    meter = DeviceMeter(torch_device)
    # As in contrastive scoring: differences are smaller than rounding errors in half precision.
    exact = settings.model_copy(update={"precision": "float32"})
    scorer = TargetScorer(load_model(model, fingerprint=model_fingerprint), exact, device=torch_device)
    trees = list(itertools.chain.from_iterable(map(read_discourse, discourse))) if discourse else None
    if suite is not None:
        reference = suite
        items = read_suite(suite)
        right = [Candidate(item.src, item.candidates[item.correct], is_prefix=item.is_prefix) for item in items]
        rows = suite_rows(items, score_references([item.id for item in items], right, scorer, trees))
    else:
        if prefix is None or src_lang is None or tgt_lang is None:
            raise UserError("--texts: also pass --src-lang and --tgt-lang")
        reference = text_path(prefix, tgt_lang)
        documents = read_documents(prefix, languages=(src_lang, tgt_lang))
        references = [Candidate(document.src, document.tgt) for document in documents]
        scores = score_references([document.id for document in documents], references, scorer, trees)
        sentences = [document.id for document in documents for _ in document.src]
        rows = [mean_row(metric, np.concatenate(values), sentences) for metric, values in scores.items()]
    scores = TestScores(test, rows, {"model": model, "reference": reference})
    write_scores(out, [scores], run=vars(run), settings=settings.model_dump(), fingerprint=fingerprint, **meter.facts())


def _prefix_unless_suite(texts: Sequence[Path] | None, suite: Path | None, *, command: str) -> Path | None:
    """Return the prefix of a split. None if there is a suite instead."""
    if bool(texts) == (suite is not None):
        raise UserError(f"docmt evaluate {command}: pass either --texts or --suite")
    return single_prefix(texts, option="--texts") if texts else None


@commands.command
def import_output(
    *,
    file: Path,
    texts: TextFiles | None = None,
    tgt_lang: str | None = None,
    suite: SuiteFile = None,
    out: OutFile,
) -> None:
    """Import an external system's translations or candidate scores.

    Example:
        docmt evaluate import-output --file theirs.de --texts text/test.documents.tsv text/test.de --tgt-lang de
        --out hypotheses.jsonl

    Args:
        file: translations, with a line per sentence or per document, or with blank lines between documents, or JSONL
            from `docmt decode translate`. For a suite, a line per item with the candidate scores, or JSON from
            `docmt decode score-candidates`.
        texts: PREFIX.documents.tsv and PREFIX.LANG of the split's target side.
        tgt_lang: target language. Only with --texts.
    """
    prefix = _prefix_unless_suite(texts, suite, command="import-output")
    if suite is not None:
        items = read_user_log_probabilities(file, read_suite(suite))
        described = provenance.describe(settings={}, suite=sha256_file(suite), scores=sha256_file(file))
        write_json(out, {"items": items, "provenance": described})
    elif prefix is not None:
        if tgt_lang is None:
            raise UserError("--texts: also pass --tgt-lang")
        index, reference = read_reference(prefix, languages=(tgt_lang,))
        hypotheses = read_user_hypotheses(file, index, reference, tgt_lang=tgt_lang)
        write_jsonl(out, (hypothesis.model_dump() for hypothesis in hypotheses))


@commands.command
def compare(
    *,
    settings: Settings = EvaluationSettings(metrics=["s-BLEU", "d-BLEU (documents)", "chrF", "d-chrF (documents)"]),
    references: list[Path],
    tgt_lang: TgtLang,
    src_lang: str = "",
    training: Path | None = None,
    hypotheses: list[str],
    out: Annotated[OutFile | None, option("CSV file to write, in addition to printing.")] = None,
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
            line, per sentence or per document, or blank lines between documents, or is JSONL from `docmt decode
            translate`.
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
    systems = {}
    prefix = references[0].with_suffix("")
    for name, path in paths.items():
        translations = read_user_hypotheses(path, index, reference, tgt_lang=tgt_lang, blank=blank)
        systems[name] = TranslatedTest(translations, reference, settings, prefix, src_lang, tgt_lang, training, more)
        problem = find_tokenization(translations, reference)
        if problem:
            log.warning("%s: %s: detokenize them, as the reference is", path, problem)
    rows = compare_systems(systems)
    if out:
        import pandas as pd

        with atomic_writer(out) as file:
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
        cells = [escape_controls(row["system"]), row["metric"]]
        for key, form in forms.items():
            cells.append("–" if row[key] is None else format(row[key], form))
        lines.append(cells)
    # Otherwise, tabulate would parse numbers and drop trailing zeros.
    aligned = ["left"] * 2 + ["right"] * 6
    print(tabulate(lines, headers, tablefmt="simple", colalign=aligned, disable_numparse=True))
    for metric, signature in dict.fromkeys((row["metric"], row["signature"]) for row in rows):
        print(f"{metric}: {signature}")


@commands.command
def difference(
    *,
    settings: Settings = EvaluationSettings(),
    outputs: Outputs,
    baseline: Annotated[list[Path], option("outputs of the baseline, named as in --outputs.")],
    tests: TestFiles,
    dataset: Annotated[str, option("name of the dataset.")],
    names: Annotated[tuple[str, str], option("names of the system and of the baseline.")],
    fingerprint: Fingerprint = None,
    out: OutFile,
) -> None:
    """Test a system against a baseline on test sets and suites, over all seeds.

    Example:
        docmt evaluate difference --outputs seed1/suite_gender.json seed2/suite_gender.json
        --baseline base/suite_gender.json --suites gender.jsonl --src-lang en --tgt-lang de --dataset ende
        --names mine base --out differences.json
    """
    from docmt.evaluation.significance import compare_translations, compare_verdicts

    _refuse_unused(settings, contrast=["ties"])
    rows = []
    for test in match_outputs(outputs, tests, baseline=baseline):
        if test.kind == "test":
            translated = _read_translations(test, settings)
            n_ours = len(test.outputs)
            differences = compare_translations(translated[:n_ours], translated[n_ours:])
        else:
            metric, items, judge = _read_judged(test, settings.contrast.ties)
            ours = list(map(judge, test.outputs))
            theirs = list(map(judge, test.baseline))
            differences = compare_verdicts(metric, [item.phenomenon for item in items], ours, theirs)
        keys = {"dataset": dataset, "test": test.name, "system": names[0], "baseline": names[1]}
        rows += [keys | vars(tested) for tested in differences]
    described = provenance.describe_result(settings=settings.model_dump(), fingerprint=fingerprint)
    write_json(out, {"provenance": described, "differences": rows})


def _read_judged(
    test: TestOutputs, ties: Ties
) -> tuple[str, Sequence[ContrastiveItem | GenerativeItem], Callable[[Path], list[bool]]]:
    """Return a suite's metric and items, and a function from an output file to True per correct item."""
    if test.kind == "suite":
        pairs = read_suite(test.file)

        def judge(path: Path) -> list[bool]:
            scores, _ = read_log_probabilities(path)
            return [is_right(item, scores, ties=ties) for item in pairs]

        return ACCURACY, pairs, judge
    from docmt.evaluation.generative_accuracy import match_expected, read_payloads

    items = read_generative_suite(test.file)
    return GENERATIVE, items, lambda path: match_expected(items, read_payloads(path, items), lang=test.languages[1])
