"""`docmt decode`: translate instances, score given targets."""

import argparse
from pathlib import Path
from typing import get_args

from docmt.cli.options import CommandParser
from docmt.corpora.contrastive import read_suite
from docmt.corpora.documents import index_path, read_documents, read_index, text_path
from docmt.corpora.generative import read_generative_suite
from docmt.decoding.settings import ContrastScore, DecodingSettings, TargetContext
from docmt.errors import UserError
from docmt.files import read_jsonl, sha256_file, write_json, write_jsonl
from docmt.provenance import describe, write_job_facts


def add_commands(parser: CommandParser) -> None:
    """Add all commands."""
    translate = parser.add_command("translate", run_translate, "translate instances by beam search")
    translate.add_paths(instances="folder of instances")
    contrast = parser.add_command(
        "contrast", run_contrast, "log probability of each candidate of a contrastive test set"
    )
    _add_contrast_options(contrast)
    generate = parser.add_command("generate", run_generate, "translate the documents of a generative test set")
    generate.add_paths(suite="generative test set, JSON lines")
    generate.add_argument("--discourse", type=Path, help="trees of the source documents, one per item")
    cxmi = parser.add_command("cxmi", run_cxmi, "what context adds to the log probability of references (CXMI)")
    _add_cxmi_options(cxmi)
    attention = parser.add_command("attention", run_attention, "what a model looks at, in a sample of documents")
    attention.add_paths(instances="folder of instances", hypotheses="their translations by the model, JSON lines")
    attention.add_argument("--documents", type=_positive, default=1, help="size of the sample, evenly spaced")
    for command in (translate, contrast, generate, cxmi, attention):
        command.add_settings("DecodingSettings")
        command.add_paths(model="model file", out="file to write")
        add_device_options(command)
    for command in (translate, generate):
        add_batch_option(command)
    _add_given_commands(parser)


def _add_given_commands(parser: CommandParser) -> None:
    taken = parser.add_command("take-hypotheses", run_take_hypotheses, "check translations that were made elsewhere")
    summary = "a line for each sentence or for each document of the split, or JSONL of `docmt decode translate`"
    taken.add_paths(hypotheses=summary, prefix="raw text of the split", out="JSONL file to write")
    scores = parser.add_command(
        "take-log-probabilities", run_take_log_probabilities, "check scores of candidates that were made elsewhere"
    )
    summary = "a line for each item with the scores of its candidates, or JSON of `docmt decode contrast`"
    scores.add_paths(scores=summary, suite="contrastive test set, JSON lines", out="JSON file to write")


def _add_contrast_options(command: CommandParser) -> None:
    command.add_paths(suite="contrastive test set, JSON lines")
    command.add_argument("--discourse", type=Path, help="trees of the source documents, one per item")
    rules = get_args(ContrastScore)
    command.add_argument("--score", choices=rules, default=rules[0], help="what is computed of each candidate")
    contexts = get_args(TargetContext)
    summary = "target sentences before the tested one: of the test set, or translated by the model"
    command.add_argument("--target-context", choices=contexts, default=contexts[0], help=summary)


def _add_cxmi_options(command: CommandParser) -> None:
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument("--prefix", type=Path, help="raw text of a split, as PREFIX.{lang}")
    source.add_argument("--suite", type=Path, help="contrastive test set instead: last sentences of right candidates")
    for side in ("src", "tgt"):
        command.add_argument(f"--{side}-lang", help="language, with --prefix")
    command.add_argument("--discourse", type=Path, nargs="+", help="trees of the source documents")
    summary = "dataset=… system=… seed=… test=… [fingerprint=…]"
    command.add_argument("--run", dest="run_keys", nargs="+", required=True, metavar="KEY=VALUE", help=summary)


def add_device_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where to compute."""
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to compute")


def add_batch_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that says how much is translated side by side."""
    parser.add_argument(
        "--batch-tokens",
        type=_positive,
        metavar="N",
        help="source tokens translated side by side; changes speed and memory, not the result (default: "
        "max_batch_tokens of the settings; on a GPU at least 98,304, less where memory ends)",
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def choose_device(options: argparse.Namespace) -> str:
    """Set the number of threads and return `cpu` or `cuda`. Raises UserError if the GPU asked for is missing."""
    import torch

    torch.set_num_threads(options.threads)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: no GPU is visible here; use --device cpu")
    if options.device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return options.device


def run_translate(options: argparse.Namespace) -> None:
    """Translate a folder of instances."""
    device = choose_device(options)
    from docmt.decoding.translation import Translator
    from docmt.instances.storage import load_instances
    from docmt.models.model_file import load_model

    settings = DecodingSettings.from_argument(options.settings, where="decoding")
    trained, instances = load_model(options.model), load_instances(options.instances)
    of_model, of_instances = trained.provenance.get("vocabulary"), instances.manifest.get("vocabulary_sha256")
    is_another = None not in (of_model, of_instances) and of_model != of_instances
    if is_another or instances.src_tokens.max() >= len(trained.vocabulary):
        raise UserError(f"{options.instances}: built with another vocabulary than that of {options.model}")
    translator = Translator(trained, settings, device=device, batch_tokens=options.batch_tokens)
    write_jsonl(options.out, translator.translate_instances(instances))
    write_job_facts(options.out, device=device, n_devices=1)


def run_contrast(options: argparse.Namespace) -> None:
    """Score the candidates of a contrastive test set, in float32 on all devices."""
    device = choose_device(options)
    from docmt.decoding.contrast import TargetScorer, score_suite, with_own_context
    from docmt.decoding.translation import Translator
    from docmt.discourse.documents import read_discourse
    from docmt.models.model_file import load_model

    settings = DecodingSettings.from_argument(options.settings, where="decoding")
    trained = load_model(options.model)
    trees = read_discourse(options.discourse) if options.discourse else None
    items = read_suite(options.suite)
    if options.target_context == "own":
        items = with_own_context(items, Translator(trained, settings, device=device), trees)
    # In half precision, candidates that differ in a word could tie or change places.
    exact = settings.model_copy(update={"precision": "float32"})
    scores = score_suite(items, TargetScorer(trained, exact, device=device, rule=options.score), trees)
    rules = {"score": options.score, "context": options.target_context}
    facts = {"suite": sha256_file(options.suite), "model": trained.provenance, "contrast": rules}
    provenance = describe(settings=settings.model_dump(), device=device, n_devices=1, **facts)
    write_json(options.out, {"items": scores, "provenance": provenance})


def run_generate(options: argparse.Namespace) -> None:
    """Translate the source documents of a generative test set."""
    device = choose_device(options)
    from docmt.decoding.translation import Translator
    from docmt.discourse.documents import read_discourse
    from docmt.models.model_file import load_model

    settings = DecodingSettings.from_argument(options.settings, where="decoding")
    items = read_generative_suite(options.suite)
    trees = read_discourse(options.discourse) if options.discourse else None
    translator = Translator(load_model(options.model), settings, device=device, batch_tokens=options.batch_tokens)
    found = translator.translate_documents([item.src for item in items], trees)
    rows = ({"id": item.id, "sentences": sentences} for item, sentences in zip(items, found, strict=True))
    write_jsonl(options.out, rows)
    write_job_facts(options.out, device=device, n_devices=1)


def run_take_hypotheses(options: argparse.Namespace) -> None:
    """Write translations that were made elsewhere in the form of docmt's own."""
    from docmt.evaluation.given import take_hypotheses

    index = read_index(index_path(options.prefix))
    hypotheses = take_hypotheses(options.hypotheses, index)
    write_jsonl(options.out, (hypothesis.model_dump() for hypothesis in hypotheses))


def run_take_log_probabilities(options: argparse.Namespace) -> None:
    """Write scores that were made elsewhere in the form of docmt's own."""
    from docmt.evaluation.given import take_log_probabilities

    items = take_log_probabilities(options.scores, read_suite(options.suite))
    provenance = describe(settings={}, suite=sha256_file(options.suite), scores=sha256_file(options.scores))
    write_json(options.out, {"items": items, "provenance": provenance})


def run_cxmi(options: argparse.Namespace) -> None:
    """Score how much a model uses context."""
    from docmt.evaluation.rows import parse_run, write_scores

    run = parse_run(options.run_keys)
    if options.prefix and None in (options.src_lang, options.tgt_lang):
        raise UserError("--prefix: give --src-lang and --tgt-lang too")
    device = choose_device(options)
    from docmt.decoding.contrast import TargetScorer
    from docmt.decoding.usage import context_gains
    from docmt.discourse.documents import read_discourse
    from docmt.evaluation.context_use import describe_suite, describe_test
    from docmt.models.model_file import load_model

    settings = DecodingSettings.from_argument(options.settings, where="decoding")
    scorer = TargetScorer(load_model(options.model), settings, device=device)
    trees = [one for file in options.discourse for one in read_discourse(file)] if options.discourse else None
    inputs = {"model": options.model, "reference": options.suite}
    if options.suite:
        items = read_suite(options.suite)
        gains = context_gains([(item.id, item.src, item.candidates[item.correct]) for item in items], scorer, trees)
        rows = describe_suite(items, gains)
    else:
        texts = read_documents(options.prefix, languages=(options.src_lang, options.tgt_lang))
        rows = describe_test(context_gains([(text.id, text.src, text.tgt) for text in texts], scorer, trees))
        inputs["reference"] = text_path(options.prefix, options.tgt_lang)
    facts = {"device": device, "n_devices": 1}
    write_scores(options.out, rows, run=run, settings=settings.model_dump(), inputs=inputs, **facts)


def run_attention(options: argparse.Namespace) -> None:
    """Write the attention in a sample of translated documents."""
    device = choose_device(options)
    from docmt.decoding.attention import attend
    from docmt.instances.storage import load_instances
    from docmt.models.model_file import load_model

    settings = DecodingSettings.from_argument(options.settings, where="decoding")
    trained, instances = load_model(options.model), load_instances(options.instances)
    hypotheses = read_jsonl(options.hypotheses)
    found = attend(trained, instances, hypotheses, settings, n_documents=options.documents, device=device)
    write_json(options.out, {"documents": found, "provenance": describe(model=trained.provenance)})
