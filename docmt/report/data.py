"""Tables on the data and on the making: instances, overlaps, counts, training, provenance."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from docmt.report.publications import PublishedStatistics, load_published, load_published_statistics
from docmt.report.settings import ReportSettings
from docmt.report.sources import History
from docmt.report.tables import MISSING, Table, blank_repeats, format_count, format_score

PASSES = "passes_"
"""How the columns of a history with passes begin, before the name of the task."""
STATISTICS_KEYS = ["dataset", "segmentation", "split"]
HEADINGS = {
    "sentences_per_instance": "sentences / instance",
    "tokens_per_instance": "tokens / instance",
    "src_unknown_tokens": "unknown source tokens",
    "tgt_unknown_tokens": "unknown target tokens",
    "seen_sources": "sources seen",
    "seen_pairs": "pairs seen",
    "seen_documents": "documents seen",
}


def statistics_table(statistics: pd.DataFrame, settings: ReportSettings) -> Table | None:
    """Counts of instances as in Table 1 of G-Transformer, the published ones beneath ours."""
    if statistics.empty:
        return None
    columns = [name for name in statistics.columns if name not in STATISTICS_KEYS]
    rows, muted = [], set()
    for record in statistics.to_dict("records"):
        labels = [str(record[name]) for name in STATISTICS_KEYS]
        rows.append(labels + [format_count(record[name]) for name in columns])
        for published in _published_statistics(settings, labels[0], labels[2]):
            muted.add(len(rows))
            counts = [format_count(published.counts.get(name, float("nan"))) for name in columns]
            rows.append([*labels[:2], f"{published.split}, {published.paper}, {published.table}", *counts])
    shown, breaks = blank_repeats(rows, 2)
    return Table(
        key="instances",
        title="Instances",
        caption="Whole sentences of one document, greedily. Tokens are subwords, the larger of source and target "
        "for each sentence, with its two marks.",
        header=["Dataset", "Segmentation", "Split", *map(_heading, columns)],
        rows=shown,
        values=statistics,
        n_labels=3,
        muted=frozenset(muted),
        breaks=breaks,
    )


def _published_statistics(settings: ReportSettings, dataset: str, split: str) -> list[PublishedStatistics]:
    """Of the papers whose rows stand beside ours, or of all when none does."""
    test = split.removeprefix("test_")
    published = settings.datasets.get(f"{dataset}/{test}", settings.datasets.get(dataset))
    part = "test" if split.startswith("test") else split
    fitting = [s for s in load_published_statistics() if (s.dataset, s.split) == (published, part)]
    papers = {number.paper for number in load_published() if number.row in settings.published.values()}
    return [s for s in fitting if not papers or s.paper in papers]


def overlap_table(overlaps: Sequence[tuple[str, str, dict[str, Any]]]) -> Table | None:
    """How much of each test set stands in the training set."""
    if not overlaps:
        return None
    values = pd.DataFrame([{"dataset": d, "test": t} | _plain(counts) for d, t, counts in overlaps])
    columns = [name for name in values if name not in ("dataset", "test") and not name.endswith("_percent")]
    rows = []
    for record in values.to_dict("records"):
        cells = []
        for name in columns:
            share = record.get(f"{name}_percent", float("nan"))
            cells.append(format_count(record[name]) + ("" if pd.isna(share) else f" ({share:.1f} %)"))
        rows.append([record["dataset"], record["test"], *cells])
    shown, breaks = blank_repeats(rows, 1)
    return Table(
        key="overlap",
        title="Overlap with the training data",
        caption="Test sentences, pairs and documents that stand word for word in the training set.",
        header=["Dataset", "Test", *map(_heading, columns)],
        rows=shown,
        values=values,
        n_labels=2,
        breaks=breaks,
    )


def counts_table(counts: Sequence[tuple[str, dict[str, Any]]]) -> Table | None:
    """What was read, filtered, dropped and cut."""
    if not counts:
        return None
    values = pd.DataFrame([{"data": name} | _plain(_flatten(content)) for name, content in counts])
    columns = [name for name in values if name != "data" and values[name].map(_is_number).any()]
    rows = [
        [record["data"], *(format_count(record[name]) if _is_number(record[name]) else MISSING for name in columns)]
        for record in values.to_dict("records")
    ]
    return Table(
        key="counts",
        title="Counts",
        caption="What was read, and what was left out, by cause.",
        header=["Data", *map(_heading, columns)],
        rows=rows,
        values=values,
        n_labels=1,
        is_long=True,
    )


def roundtrip_table(roundtrips: Sequence[tuple[str, dict[str, Any]]]) -> Table | None:
    """How many lines come back from subwords, for each dataset and language; None without measurements."""
    records = [
        {"dataset": name, "language": lang}
        | {key: counts.get(key) for key in ("lines", "restored", "share", "share_but_white_space")}
        | counts.get("causes", {})
        for name, content in roundtrips
        for lang, counts in content["languages"].items()
    ]
    if not records:
        return None
    values = pd.DataFrame(records)
    causes = list(values.columns[6:])
    rows = [
        [
            record["dataset"],
            record["language"],
            format_count(record["lines"]),
            format_score(record["share"]),
            format_score(record["share_but_white_space"]),
            *(format_count(0 if pd.isna(record[cause]) else record[cause]) for cause in causes),
        ]
        for record in values.to_dict("records")
    ]
    shown, breaks = blank_repeats(rows, 1)
    return Table(
        key="roundtrip",
        title="Text that comes back",
        caption="Lines of development and test splits that are the same after tokenising, truecasing and BPE and the "
        "way back, in percent: in every character, and but for white space; then the others by cause.",
        header=["Dataset", "Language", "lines", "restored, %", "but for white space, %", *causes],
        rows=shown,
        values=values,
        n_labels=2,
        breaks=breaks,
    )


def training_table(histories: Sequence[History], settings: ReportSettings) -> Table | None:
    """How long each run was trained, how fast, and to what validation loss."""
    if not histories:
        return None
    values = pd.DataFrame([_training_row(history) for history in histories])
    rows = [
        [
            record["dataset"],
            settings.labels.get(record["system"], record["system"]),
            str(record["seed"]),
            format_count(record["updates"]),
            format_count(record["epochs"]),
            format_score(record["minutes"], digits=1),
            format_count(round(record["tokens_per_second"]) if pd.notna(record["tokens_per_second"]) else float("nan")),
            format_score(record["best_dev_loss"], digits=3),
            format_count(record["best_step"]),
        ]
        for record in values.to_dict("records")
    ]
    shown, breaks = blank_repeats(rows, 1)
    return Table(
        key="training",
        title="Training",
        caption="Updates until the end, and the lowest validation loss with its update. Tokens per second is the "
        "median of the logged rates.",
        header=[
            "Dataset",
            "System",
            "Seed",
            "updates",
            "epochs",
            "minutes",
            "tokens / s",
            "best dev loss",
            "at update",
        ],
        rows=shown,
        values=values,
        n_labels=2,
        breaks=breaks,
        is_long=True,
    )


def passes_table(histories: Sequence[History], settings: ReportSettings) -> Table | None:
    """How often trainings with several tasks have read the data of each, and how long that took (Chen et al. 2021,
    Table 10); None without such trainings.
    """
    records = [
        {"dataset": history.dataset, "system": history.system, "seed": history.seed}
        | {name: history.table[name].max() for name in history.table if name.startswith(PASSES)}
        | {"hours": history.table["seconds"].max() / 3600}
        for history in histories
        if any(name.startswith(PASSES) for name in history.table)
    ]
    if not records:
        return None
    values = pd.DataFrame(records)
    columns = [name for name in values if name.startswith(PASSES)]
    rows = [
        [
            record["dataset"],
            settings.labels.get(record["system"], record["system"]),
            str(record["seed"]),
            *(format_score(record[name], digits=1) for name in columns),
            format_score(record["hours"], digits=2),
        ]
        for record in values.to_dict("records")
    ]
    shown, breaks = blank_repeats(rows, 1)
    return Table(
        key="passes",
        title="Tasks in training",
        caption="Passes over the data of each task, until the end of the training.",
        header=["Dataset", "System", "Seed", *(name.removeprefix(PASSES) for name in columns), "hours"],
        rows=shown,
        values=values,
        n_labels=2,
        breaks=breaks,
    )


def _training_row(history: History) -> dict[str, Any]:
    table = history.table
    nothing = pd.Series(dtype="float64")
    losses = table.set_index("step").get("dev_loss", nothing).dropna()
    return {
        "dataset": history.dataset,
        "system": history.system,
        "seed": history.seed,
        "updates": table["step"].max(),
        "epochs": table.get("epoch", nothing).max(),
        "minutes": table.get("seconds", nothing).max() / 60,
        "tokens_per_second": table.get("tokens_per_second", nothing).median(),
        "best_dev_loss": losses.min(),
        "best_step": losses.idxmin() if len(losses) else float("nan"),
    }


def provenance_table(scores: pd.DataFrame) -> Table:
    """Which commit, settings and data each score file was made with."""
    keys = ["dataset", "system", "seed", "test", "commit", "fingerprint", "data"]
    values = scores[keys].drop_duplicates()
    rows = [[MISSING if pd.isna(cell) else str(cell) for cell in row] for row in values.itertuples(index=False)]
    shown, breaks = blank_repeats(rows, 1)
    return Table(
        key="provenance",
        title="Runs",
        caption="The commit of docmt (+ marks uncommitted changes), the hash of the settings, and the first digits of "
        "the SHA-256 of the reference or test suite.",
        header=["Dataset", "System", "Seed", "Test", "Commit", "Fingerprint", "Data"],
        rows=shown,
        values=values,
        n_labels=7,
        breaks=breaks,
        is_long=True,
    )


def signature_table(scores: pd.DataFrame) -> Table:
    """How each metric was computed, once."""
    values = scores[["metric", "signature"]].drop_duplicates().sort_values("metric", kind="stable")
    rows = [[MISSING if pd.isna(cell) else str(cell) for cell in row] for row in values.itertuples(index=False)]
    return Table(
        key="signatures",
        title="Signatures",
        caption="How each score was computed.",
        header=["Metric", "Signature"],
        rows=rows,
        values=values,
        n_labels=1,
        n_remarks=1,
    )


def package_versions(scores: pd.DataFrame) -> list[str]:
    """The sets of package versions that the scores were made with."""
    return [str(versions) for versions in scores["versions"].dropna().unique()]


def _heading(name: str) -> str:
    return HEADINGS.get(name, name.replace("_", " "))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and pd.notna(value)


def _plain(counts: dict[str, Any]) -> dict[str, Any]:
    """The entries that are single values."""
    return {key: value for key, value in counts.items() if key != "test" and not isinstance(value, list | dict)}


def _flatten(counts: dict[str, Any]) -> dict[str, Any]:
    """Bring the counts of nested mappings up, as `outer: inner`; those of single inputs stay with their own file."""
    flat: dict[str, Any] = {}
    for key, value in counts.items():
        if key in ("inputs", "origin"):
            continue
        if isinstance(value, dict):
            flat |= {f"{key}: {inner}": number for inner, number in _flatten(value).items()}
        else:
            flat[key] = value
    return flat
