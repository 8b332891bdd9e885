"""`docmt decode`: translate instances and test sets, and score given targets."""

import logging
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from docmt.checksums import sha256_file
from docmt.commands import (
    CommandGroup,
    ModelFingerprint,
    NumberOfShards,
    OptionalFile,
    OutFile,
    OutWithJobFacts,
    Positive,
    Shard,
    Threads,
    check_shard,
    option,
    optional_file,
    settings_at,
)
from docmt.corpora.suite_items import read_generative_suite, read_suite
from docmt.decoding.settings import ContrastScore, DecodingSettings
from docmt.errors import UserError
from docmt.files import iterate_lines, write_json, write_jsonl, write_lines
from docmt.gpu_locks import claim_gpus
from docmt.provenance import describe, write_job_facts

log = logging.getLogger(__name__)

commands = CommandGroup("decode")

Settings = Annotated[DecodingSettings, settings_at("decoding")]
ModelFile = Annotated[Path, option("model file.")]
Device = Annotated[Literal["auto", "cpu", "cuda"], option("device. `auto`: a GPU if there is one.")]
BatchTokens = Annotated[
    Positive | None,
    Parameter(
        help="source tokens per batch. Affects speed and memory, not the result. Default: max_batch_tokens from "
        "--settings, and on a GPU at least 98,304, or less if memory runs out."
    ),
]
SuiteTrees = Annotated[OptionalFile, optional_file("trees of the source documents, one per item.")]


def choose_device(device: Device, threads: int) -> str:
    """Set the number of threads and return `cpu` or `cuda`."""
    import torch

    from docmt.models.gpus import check_gpus, missing_gpus

    torch.set_num_threads(threads)
    if device == "cpu":
        return device
    claim_gpus()
    if torch.cuda.is_available():
        check_gpus()
        return "cuda"
    reason = missing_gpus()
    if device == "cuda":
        advice = "use --device cpu"
        if reason:
            advice = f"{reason}, or {advice}"
        raise UserError(f"--device cuda: no GPU is visible here; {advice}")
    if reason:
        log.warning("decoding on the CPU, although this machine has a GPU: %s", reason)
    return "cpu"


@commands.command
def translate(
    *,
    settings: Settings = DecodingSettings(),
    model: ModelFile,
    model_fingerprint: ModelFingerprint = None,
    instances: Path,
    shard: Shard = 1,
    n_shards: NumberOfShards = 1,
    out: OutWithJobFacts,
    threads: Threads = 1,
    device: Device = "auto",
    batch_tokens: BatchTokens = None,
) -> None:
    """Translate instances by beam search.

    Example:
        docmt decode translate --instances instances/test --model model.pt --settings '{"beam_size":5}'
        --out hypotheses.jsonl

    Args:
        instances: folder of instances.
    """
    check_shard(shard, n_shards)
    torch_device = choose_device(device, threads)
    from docmt.decoding.translation import Translator
    from docmt.instances.storage import load_instances, read_manifest
    from docmt.models.gpus import DeviceMeter
    from docmt.models.model_file import load_model

    meter = DeviceMeter(torch_device)
    trained = load_model(model, fingerprint=model_fingerprint)
    of_model = trained.provenance.get("vocabulary")
    of_instances = read_manifest(instances).get("vocabulary_sha256")
    if None not in (of_model, of_instances) and of_model != of_instances:
        raise UserError(f"{instances}: built with a different vocabulary than {model}: build them again")
    read = load_instances(instances, n_symbols=len(trained.vocabulary))
    translator = Translator(trained, settings, device=torch_device, batch_tokens=batch_tokens)
    write_jsonl(out, translator.translate_instances(read, read.of_shard(shard, n_shards)))
    write_job_facts(out, **meter.facts())


@commands.command
def join_translations(*, shards: list[Path], out: OutFile) -> None:
    """Join the shards of a translation.

    Example:
        docmt decode join-translations --shards a.1-of-2.jsonl a.2-of-2.jsonl --out a.jsonl

    Args:
        shards: outputs of `docmt decode translate` with --n-shards, in order.
    """
    write_lines(out, chain.from_iterable(map(iterate_lines, shards)))


@commands.command
def score_candidates(
    *,
    settings: Settings = DecodingSettings(),
    model: ModelFile,
    model_fingerprint: ModelFingerprint = None,
    suite: Path,
    discourse: SuiteTrees = None,
    score: ContrastScore = "log_probability",
    target_context: Literal["gold", "own"] = "gold",
    out: OutFile,
    threads: Threads = 1,
    device: Device = "auto",
) -> None:
    """Score the candidates of a contrastive test set by their log probability, in float32 on all devices.

    Example:
        docmt decode score-candidates --suite deixis.jsonl --model model.pt --out deixis.scores.json

    Args:
        suite: contrastive test set (JSON lines).
        score: `log_probability` (sum over tokens), `per_token` (mean), or `label_smoothed` (negative loss).
        target_context: preceding target sentences, from the test set or translated by the model.
    """
    torch_device = choose_device(device, threads)
    from docmt.decoding.contrastive_scoring import TargetScorer, score_suite, with_own_context
    from docmt.decoding.translation import Translator
    from docmt.discourse.discourse_documents import read_discourse
    from docmt.models.gpus import DeviceMeter
    from docmt.models.model_file import load_model

    meter = DeviceMeter(torch_device)
    trained = load_model(model, fingerprint=model_fingerprint)
    trees = read_discourse(discourse) if discourse else None
    items = read_suite(suite)
    if target_context == "own":
        items = with_own_context(items, Translator(trained, settings, device=torch_device), trees)
    # In half precision, candidates that differ in a word could tie or change places.
    exact = settings.model_copy(update={"precision": "float32"})
    scores = score_suite(items, TargetScorer(trained, exact, device=torch_device, rule=score), trees)
    facts = {
        "suite": sha256_file(suite),
        "model": trained.provenance,
        "contrast": {"score": score, "context": target_context},
    }
    provenance = describe(settings=settings.model_dump(), **meter.facts(), **facts)
    write_json(out, {"items": scores, "provenance": provenance})


@commands.command
def translate_suite(
    *,
    settings: Settings = DecodingSettings(),
    model: ModelFile,
    model_fingerprint: ModelFingerprint = None,
    suite: Path,
    discourse: SuiteTrees = None,
    out: OutWithJobFacts,
    threads: Threads = 1,
    device: Device = "auto",
    batch_tokens: BatchTokens = None,
) -> None:
    """Translate the source documents of a generative test set.

    Example:
        docmt decode translate-suite --suite gender.jsonl --model model.pt --out gender.translations.jsonl

    Args:
        suite: generative test set (JSON lines).
    """
    torch_device = choose_device(device, threads)
    from docmt.decoding.translation import Translator, warn_without_trees
    from docmt.discourse.discourse_documents import read_discourse
    from docmt.models.gpus import DeviceMeter
    from docmt.models.model_file import load_model

    meter = DeviceMeter(torch_device)
    trained = load_model(model, fingerprint=model_fingerprint)
    items = read_generative_suite(suite)
    trees = read_discourse(discourse) if discourse else None
    translator = Translator(trained, settings, device=torch_device, batch_tokens=batch_tokens)
    if trees is None and not translator.with_trees:
        warn_without_trees(trained)
    translations = translator.translate_documents([item.src for item in items], trees)
    rows = []
    for item, sentences in zip(items, translations, strict=True):
        rows.append({"id": item.id, "sentences": sentences})
    write_jsonl(out, rows)
    write_job_facts(out, **meter.facts())
