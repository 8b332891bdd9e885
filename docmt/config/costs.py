"""Data, trainings, GPU-hours and disk space of a study, before it runs."""

from collections.abc import Container, Iterable

from docmt import paths
from docmt.config.artifacts.base import Artifact, Study
from docmt.config.artifacts.runs import trained_runs
from docmt.config.artifacts.study import planned_artifacts
from docmt.config.schema import Config
from docmt.config.systems import Run, model_settings, text_settings, training_settings
from docmt.corpora.catalog import find_corpus
from docmt.models.presets import SIZES
from docmt.models.published.catalog import load_models

GPU_HOURS = 1.25
"""GPU-hours for 100,000 updates with 16,400 source tokens, of G-Transformer, `MEASURED_SIZE`, on an H100, with compiled
graphs (docs/experiments/gpu.md)."""
MEASURED_SIZE = "base"
FLOAT_BYTES = 4
CHECKPOINT_MODELS = 4
"""Size of a checkpoint and its best weights, in models: weights, two moments of Adam, best weights."""


def describe_costs(study: Study, planned: Container[str] | None = None) -> list[str]:
    """Return lines on the data and the costs of a study, for a terminal. Empty without catalog data or trainings.

    `planned` are the outputs of a run (default: of the whole study).
    """
    config = study.config
    runs = trained_runs(study)
    if planned is not None:
        runs = [run for run in runs if paths.MODEL.format(**vars(run)) in planned]
    sources = _catalog_sources(planned_artifacts(study, planned))
    lines = []
    if sources:
        lines.append(f"data: {', '.join(sources)}")
    if runs:
        facts = [_describe_updates(config, runs), _describe_gpus(config, runs)]
        n_bytes = sum(_count_bytes(config, run) for run in runs)
        facts.append(f"about {n_bytes / 1e9:,.1f} GB for models and checkpoints")
        lines.append(f"costs: {'; '.join(filter(None, facts))}")
    return lines


def _catalog_sources(artifacts: Iterable[Artifact]) -> list[str]:
    """Return the corpora and models that are fetched, with the way to obtain them and the terms of use."""
    splits: dict[str, list[str]] = {}
    models = []
    for artifact in artifacts:
        if "corpora_fetch" in artifact.rules:
            corpus, split = artifact.wildcards
            splits.setdefault(corpus, []).append(split)
        elif "models_fetch" in artifact.rules:
            models.append(artifact.wildcards[0])
    sources = []
    for corpus, of_corpus in splits.items():
        entry = find_corpus(corpus)
        way = "by hand"
        if all(entry.family.files[name].addresses for name in entry.file_names(of_corpus)):
            way = "download"
        sources.append(f"{corpus} ({way}, {entry.family.terms})")
    for name in models:
        entry = load_models()[name]
        way = "download" if entry.url else "by hand"
        sources.append(f"{name} ({way}, {entry.terms})")
    return sources


def _describe_updates(config: Config, runs: list[Run]) -> str:
    limits = _update_limits(config, runs)
    trainings = f"{len(runs)} training{'s' * (len(runs) > 1)}"
    if not limits:
        return f"{trainings}, number of updates unknown (until validation losses stop falling)"
    text = f"{trainings}, at most {sum(limits):,} updates"
    n_others = len(runs) - len(limits)
    if n_others:
        text += f" in {len(limits)}, unknown in the other{'s' * (n_others > 1)}"
    return text


def _update_limits(config: Config, runs: list[Run]) -> list[int]:
    """Return the maximum numbers of updates that the configuration sets."""
    limits = []
    for run in runs:
        limit = training_settings(config, run.system).max_steps
        if limit is not None:
            limits.append(limit)
    return limits


def _describe_gpus(config: Config, runs: list[Run]) -> str:
    """Return the measured GPU-hours for the runs with the measured size. Empty without such runs."""
    width = SIZES[MEASURED_SIZE]["width"]
    measured = [run for run in runs if model_settings(config, run.system).width == width]
    if not measured:
        return ""
    rate = f"{GPU_HOURS} GPU-hours per 100,000 updates of size {MEASURED_SIZE} on an H100"
    n_updates = sum(_update_limits(config, measured))
    if not n_updates:
        return rate
    return f"{rate} (at most {n_updates * GPU_HOURS / 1e5:,.0f} for the known updates)"


def _count_bytes(config: Config, run: Run) -> float:
    """Return about the size of a finished run's model and checkpoints."""
    settings = model_settings(config, run.system)
    text = text_settings(config, run.dataset)
    row = config.systems[run.system]
    n_checkpoints = 0
    if row.recipe:
        n_checkpoints = config.training[row.recipe].keep_checkpoints
    if text.pretrained in load_models():
        n_bytes = 1e6 * load_models()[text.pretrained].megabytes
    else:
        n_subwords = text.sentencepiece_size if text.tokenization == "sentencepiece" else text.bpe_merges
        n_weights = n_subwords * settings.width  # one matrix for all embeddings
        n_weights += settings.encoder_layers * settings.width * (4 * settings.width + 2 * settings.feed_forward_width)
        n_weights += settings.decoder_layers * settings.width * (8 * settings.width + 2 * settings.feed_forward_width)
        n_bytes = FLOAT_BYTES * n_weights
    return n_bytes * (1 + CHECKPOINT_MODELS * n_checkpoints)
