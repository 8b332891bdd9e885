"""`docmt evaluate`: score hypotheses, test sets and the use of context; test differences for significance."""

import logging
from pathlib import Path
from typing import Annotated, Any

from docmt import provenance
from docmt.commands import CommandGroup, OutFile, TgtLang, Threads, option, settings_at, written
from docmt.corpora.documents import index_path, read_documents, read_index, text_path
from docmt.corpora.suite_items import read_generative_suite, read_suite
from docmt.decoding.commands import Device, ModelFile, choose_device
from docmt.decoding.settings import DecodingSettings
from docmt.errors import UserError
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
    TranslatedTest,
    find_metric,
    score_translations,
)
from docmt.evaluation.option_groups import ComparedPair, ScoredRun, TestText
from docmt.evaluation.references import read_user_references
from docmt.evaluation.score_rows import WARNING, ScoreRow, write_scores
from docmt.files import atomic_writer, sha256_file, write_json, write_jsonl

log = logging.getLogger(__name__)
commands = CommandGroup("evaluate")

Settings = Annotated[EvaluationSettings, settings_at("evaluation")]
HypothesesFile = Annotated[Path, option("JSONL of `docmt decode translate`.")]
TiesRule = Annotated[Ties, option("what an item with equal scores counts.")]
ContrastiveSuite = Annotated[Path, option("contrastive test set, JSON lines.")]
GenerativeSuite = Annotated[Path, option("generative test set, JSON lines.")]


@commands.command
def scores(
    *,
    settings: Settings = EvaluationSettings(),
    text: TestText,
    hypotheses: HypothesesFile,
    training: Path | None = None,
    run: ScoredRun,
    out: OutFile,
) -> None:
    """Score one run with all metrics of the settings.

    Example:
        docmt evaluate scores --prefix text/test --src-lang en --tgt-lang de --hypotheses hypotheses.jsonl
        --dataset ende --system mine --seed 1 --test talks --out scores.json

    Args:
        training: prefix of raw parallel text that improves the word alignment for APT.
    """
    (test,) = _read_tests(settings, text, [hypotheses], training)
    _write_run(out, score_translations(test), run, text, hypotheses, test)


@commands.command
def comet(
    *,
    settings: Settings = EvaluationSettings(),
    text: TestText,
    hypotheses: HypothesesFile,
    run: ScoredRun,
    out: OutFile,
) -> None:
    """Score one run with COMET, by its program in another environment.

    Example:
        docmt evaluate comet --settings @comet.json --prefix text/test --src-lang en --tgt-lang de
        --hypotheses hypotheses.jsonl --dataset ende --system mine --seed 1 --test talks --out comet.json
    """
    from docmt.evaluation.comet import score_comet

    if settings.comet is None:
        raise UserError("evaluation.comet: give its checkpoint in --settings")
    (test,) = _read_tests(settings, text, [hypotheses])
    _write_run(out, score_comet(test, settings.comet), run, text, hypotheses, test)


def _read_tests(
    settings: EvaluationSettings, text: TestText, hypotheses: list[Path], training: Path | None = None
) -> list[TranslatedTest]:
    index, reference, more = text.read()
    places = {"prefix": text.prefix, "src_lang": text.src_lang, "tgt_lang": text.tgt_lang, "training": training}
    return [
        TranslatedTest(read_hypotheses(path, index), reference, settings, more_references=more, **places)
        for path in hypotheses
    ]


def _write_run(
    out: Path, rows: list[ScoreRow], run: ScoredRun, text: TestText, hypotheses: Path, test: TranslatedTest
) -> None:
    if problem := find_tokenization(test.sentences, test.reference):
        log.warning("%s: %s: detokenize them, as the reference is", hypotheses, problem)
        for row in rows:
            if row["value"] is not None:
                row["signature"] += f"|{WARNING}{problem}"
    inputs = {"hypotheses": hypotheses, "reference": text_path(text.prefix, text.tgt_lang)}
    inputs["documents"] = index_path(text.prefix)
    inputs |= {f"reference {number}": path for number, path in enumerate(text.references or [], start=2)}
    write_scores(out, rows, run=vars(run), settings=test.settings.model_dump(), inputs=inputs)


@commands.command
def contrast(
    *, suite: ContrastiveSuite, log_probabilities: Path, ties: TiesRule = "wrong", run: ScoredRun, out: OutFile
) -> None:
    """Contrastive accuracy of one run.

    Example:
        docmt evaluate contrast --suite deixis.jsonl --log-probabilities deixis.scores.json --dataset enru
        --system mine --seed 1 --test deixis --out deixis.json

    Args:
        log_probabilities: JSON of `docmt decode contrast`.
    """
    items = read_suite(suite)
    found, origin = read_log_probabilities(log_probabilities)
    if origin.get("suite") not in (None, sha256_file(suite)):
        raise UserError(f"{log_probabilities}: computed on another content of {suite}: compute it again")
    where = f"{log_probabilities}: provenance.contrast"
    rules = ContrastSettings.load({**origin.get("contrast", {}), "ties": ties}, where=where)
    inputs = {"reference": suite, "log_probabilities": log_probabilities}
    rows = score_contrast(items, found, rules)
    write_scores(out, rows, run=vars(run), settings={}, inputs=inputs, log_probabilities=origin)


@commands.command
def generation(*, suite: GenerativeSuite, tgt_lang: TgtLang, translations: Path, run: ScoredRun, out: OutFile) -> None:
    """Generative accuracy of one run, or of any translation.

    Example:
        docmt evaluate generation --suite gender.jsonl --tgt-lang de --translations gender.translations.jsonl
        --dataset ende --system mine --seed 1 --test gender --out gender.json

    Args:
        translations: JSONL of `docmt decode generate`, or text with a line per item (its payload) or per source
            sentence.
    """
    from docmt.evaluation.generative_accuracy import read_payloads, score_generation

    items = read_generative_suite(suite)
    rows = score_generation(items, read_payloads(translations, items), lang=tgt_lang)
    inputs = {"reference": suite, "translations": translations}
    write_scores(out, rows, run=vars(run), settings={}, inputs=inputs)


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
    out: OutFile,
    threads: Threads = 1,
    device: Device = "auto",
) -> None:
    """Measure the log probability of references, and what context adds to it (CXMI).

    Example:
        docmt evaluate cxmi --suite deixis.jsonl --model model.pt --dataset enru --system mine --seed 1 --test deixis
        --out cxmi.json

    Args:
        prefix: raw text of a split, as PREFIX.{lang}.
        src_lang: source language, with --prefix.
        tgt_lang: target language, with --prefix.
        suite: contrastive test set instead: last sentences of right candidates.
        discourse: trees of the source documents.
    """
    if (prefix is None) == (suite is None):
        raise UserError("docmt evaluate cxmi: give either --prefix or --suite")
    chosen = choose_device(device, threads)
    import numpy as np

    from docmt.decoding.contrastive_scoring import Candidate, TargetScorer
    from docmt.discourse.discourse_documents import read_discourse
    from docmt.evaluation.cxmi import mean_row, score_references, suite_rows
    from docmt.models.model_file import load_model

    # As in contrastive scoring: differences of log probabilities are smaller than half precision rounds.
    exact = settings.model_copy(update={"precision": "float32"})
    scorer = TargetScorer(load_model(model), exact, device=chosen)
    trees = [document for file in discourse for document in read_discourse(file)] if discourse else None
    if suite is not None:
        reference, items = suite, read_suite(suite)
        right = [Candidate(item.src, item.candidates[item.correct], is_prefix=item.is_prefix) for item in items]
        rows = suite_rows(items, score_references([item.id for item in items], right, scorer, trees))
    else:
        if prefix is None or src_lang is None or tgt_lang is None:
            raise UserError("--prefix: give --src-lang and --tgt-lang too")
        reference = text_path(prefix, tgt_lang)
        texts = read_documents(prefix, languages=(src_lang, tgt_lang))
        references = [Candidate(text.src, text.tgt) for text in texts]
        scores = score_references([text.id for text in texts], references, scorer, trees)
        rows = [mean_row(metric, np.concatenate(values)) for metric, values in scores.items()]
    inputs = {"model": model, "reference": reference}
    facts = {"device": chosen, "n_devices": 1}
    write_scores(out, rows, run=vars(run), settings=settings.model_dump(), inputs=inputs, **facts)


@commands.command
def take_hypotheses(*, hypotheses: Path, prefix: Path, out: OutFile) -> None:
    """Check translations that another program made, and write them in the form of docmt's own.

    Example:
        docmt evaluate take-hypotheses --hypotheses theirs.de --prefix text/test --out hypotheses.jsonl

    Args:
        hypotheses: a line for each sentence or for each document of the split, or JSONL of `docmt decode translate`.
        prefix: raw text of the split, as PREFIX.{lang}.
    """
    found = read_user_hypotheses(hypotheses, read_index(index_path(prefix)))
    write_jsonl(out, (hypothesis.model_dump() for hypothesis in found))


@commands.command
def take_log_probabilities(*, scores: Path, suite: ContrastiveSuite, out: OutFile) -> None:
    """Check scores of candidates that another program made, and write them in the form of docmt's own.

    Example:
        docmt evaluate take-log-probabilities --scores theirs.txt --suite deixis.jsonl --out deixis.scores.json

    Args:
        scores: a line for each item with the scores of its candidates, or JSON of `docmt decode contrast`.
    """
    items = read_user_log_probabilities(scores, read_suite(suite))
    described = provenance.describe(settings={}, suite=sha256_file(suite), scores=sha256_file(scores))
    write_json(out, {"items": items, "provenance": described})


@commands.command
def compare(
    *,
    settings: Settings = EvaluationSettings(metrics=["s-BLEU", "d-BLEU (documents)", "chrF"]),
    references: list[Path],
    tgt_lang: TgtLang,
    src_lang: str = "",
    training: Path | None = None,
    hypotheses: list[str],
    out: Annotated[Path | None, written("CSV file to write the table to as well.")] = None,
) -> None:
    """Score translations of any origin, without a study, test their differences, and print a table.

    Example:
        docmt evaluate compare --references test.de --tgt-lang de --hypotheses service=service.de llm=llm.de

    Args:
        references: text with a line per sentence; blank lines between documents, or PREFIX.documents.tsv beside it.
            Others are further references.
        src_lang: source language, for metrics that read the source, which is PREFIX.{lang} beside the first reference.
        training: prefix of raw parallel text that improves word alignments.
        hypotheses: systems, each as FILE or NAME=FILE; the first is the baseline. A file has a line for each line of
            the reference, for each sentence or for each document, or is JSONL of `docmt decode translate`.
    """
    from docmt.evaluation.significance import compare_systems

    for metric in settings.metrics:
        needs = find_metric(metric).needs
        if MODEL in needs:
            raise UserError(f"--settings: metrics: {metric!r} needs the model: only a study computes it")
        if not src_lang and ALIGNER in needs:
            raise UserError(f"--settings: metrics: {metric!r} reads the source: give its language, --src-lang")
    paths = _name_systems(hypotheses)
    index, (reference, *more), blank = read_user_references(references)
    if len(index.ids) == 1:
        log.warning("%s: one document, by its blank lines or its documents.tsv: d-BLEU cannot be tested", references[0])
    systems, prefix = {}, references[0].with_suffix("")
    for name, path in paths.items():
        found = read_user_hypotheses(path, index, blank)
        systems[name] = TranslatedTest(found, reference, settings, prefix, src_lang, tgt_lang, training, more)
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
        # An existing path is taken whole, even with `=` in it, and names itself.
        name, equals, path = argument.partition("=")
        if Path(argument).exists() or not equals:
            name = path = argument
        if name in paths:
            raise UserError(f"--hypotheses {argument}: two systems are called {name!r}; write NAME=FILE")
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
        lines.append([row["system"], row["metric"], *numbers])
    # Without its own reading of numbers, which drops final zeros.
    aligned = ["left"] * 2 + ["right"] * 6
    print(tabulate(lines, headers, tablefmt="simple", colalign=aligned, disable_numparse=True))
    for metric, signature in dict.fromkeys((row["metric"], row["signature"]) for row in rows):
        print(f"{metric}: {signature}")


@commands.command
def difference(*, settings: Settings = EvaluationSettings(), text: TestText, pair: ComparedPair, out: OutFile) -> None:
    """Test the translations of a system against a baseline's, over all seeds.

    Example:
        docmt evaluate difference --prefix text/test --src-lang en --tgt-lang de
        --system b.seed1.jsonl b.seed2.jsonl --baseline a.seed1.jsonl a.seed2.jsonl --names mine baseline
        --dataset ende --test talks --out difference.json
    """
    from docmt.evaluation.significance import compare_translations

    tests = _read_tests(settings, text, [*pair.system, *pair.baseline])
    found = compare_translations(tests[: len(pair.system)], tests[len(pair.system) :])
    pair.write(out, found, settings=settings.model_dump())


@commands.command
def contrast_difference(*, suite: ContrastiveSuite, ties: TiesRule = "wrong", pair: ComparedPair, out: OutFile) -> None:
    """Test the difference in contrastive accuracy between a system and a baseline, over all seeds.

    Example:
        docmt evaluate contrast-difference --suite deixis.jsonl --system b.json --baseline a.json
        --names mine baseline --dataset enru --test deixis --out difference.json
    """
    from docmt.evaluation.significance import compare_verdicts

    items = read_suite(suite)
    system, baseline = (
        [[is_right(item, scores, ties=ties) for item in items] for scores, _ in map(read_log_probabilities, paths)]
        for paths in (pair.system, pair.baseline)
    )
    found = compare_verdicts(ACCURACY, [item.phenomenon for item in items], system, baseline)
    pair.write(out, found, settings={})


@commands.command
def generation_difference(*, suite: GenerativeSuite, tgt_lang: TgtLang, pair: ComparedPair, out: OutFile) -> None:
    """Test the difference in generative accuracy between a system and a baseline, over all seeds.

    Example:
        docmt evaluate generation-difference --suite gender.jsonl --tgt-lang de --system b.jsonl --baseline a.jsonl
        --names mine baseline --dataset ende --test gender --out difference.json
    """
    from docmt.evaluation.generative_accuracy import judge_payloads, read_payloads
    from docmt.evaluation.significance import compare_verdicts

    items = read_generative_suite(suite)
    system, baseline = (
        [judge_payloads(items, read_payloads(path, items), lang=tgt_lang) for path in paths]
        for paths in (pair.system, pair.baseline)
    )
    found = compare_verdicts(GENERATIVE, [item.phenomenon for item in items], system, baseline)
    pair.write(out, found, settings={})
