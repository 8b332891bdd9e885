"""Tables of data and training: instances, overlaps, counts, round trips, training runs, provenance."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from docmt.report.frames import Record, choose, column, is_missing, records
from docmt.report.publications import PublishedStatistics, find_published, load_published, load_published_statistics
from docmt.report.settings import ReportSettings
from docmt.report.sources import CUTTING_COLUMNS, History
from docmt.report.tables import MISSING, CellMaker, Table, blank_repeats, build_table, count, format_count, score, word

PASSES = "passes_"
"""Prefix of the columns of a history that count passes, before the name of the task."""
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
    """Counts of instances as in Table 1 of G-Transformer, with the published ones below ours."""
    if statistics.empty:
        return None
    cutting = next(name for name in CUTTING_COLUMNS if name in statistics)
    keys = ["dataset", cutting, "split"]
    columns = [name for name in statistics.columns if name not in keys]
    rows, muted = [], set()
    for record in records(statistics):
        labels = [str(record[name]) for name in keys]
        rows.append(labels + [format_count(record[name]) for name in columns])
        for published in _published_statistics(settings, labels[0], labels[2]):
            muted.add(len(rows))
            counts = [format_count(published.counts.get(name, float("nan"))) for name in columns]
            rows.append([*labels[:2], f"{published.split}, {published.paper}, {published.table}", *counts])
    shown, breaks = blank_repeats(rows, 2)
    return Table(
        key="instances",
        title="Instances",
        caption="Whole sentences of one document, packed greedily. Tokens are subwords, the larger of source and "
        "target for each sentence, including its two markers.",
        header=["Dataset", cutting.capitalize(), "Split", *map(_heading, columns)],
        rows=shown,
        values=statistics,
        n_labels=3,
        muted=frozenset(muted),
        breaks=breaks,
    )


def _published_statistics(settings: ReportSettings, dataset: str, split: str) -> list[PublishedStatistics]:
    """Those of the papers whose rows are shown beside ours, or of all papers when there are none."""
    test = split.removeprefix("test_")
    published = settings.datasets.get(f"{dataset}/{test}", settings.datasets.get(dataset))
    part = "test" if split.startswith("test") else split
    fitting = [s for s in load_published_statistics() if (s.dataset, s.split) == (published, part)]
    papers = {number.paper for number in load_published() if number.row in settings.published.values()}
    return [s for s in fitting if not papers or s.paper in papers]


def overlap_table(overlaps: Sequence[tuple[str, str, dict[str, Any]]]) -> Table | None:
    """How much of each test set is in the training set."""
    if not overlaps:
        return None
    values = pd.DataFrame([{"dataset": d, "test": t} | _plain(counts) for d, t, counts in overlaps])
    columns = [str(name) for name in values if name not in ("dataset", "test") and not str(name).endswith("_percent")]
    return build_table(
        values,
        {"Dataset": word("dataset"), "Test": word("test")}
        | {_heading(name): _count_and_share(name) for name in columns},
        key="overlap",
        title="Overlap with the training data",
        caption="Test sentences and pairs that occur verbatim in the training set, and documents with more than "
        "half of their sentences there.",
        n_labels=2,
        n_repeated=1,
    )


def _count_and_share(name: str) -> CellMaker:
    def make_cell(record: Record) -> str:
        share = record.get(f"{name}_percent")
        return format_count(record[name]) + ("" if share is None or is_missing(share) else f" ({share:.1f} %)")

    return make_cell


def counts_table(counts: Sequence[tuple[str, dict[str, Any]]]) -> Table | None:
    """What was read, filtered, dropped and cut."""
    if not counts:
        return None
    values = pd.DataFrame([{"data": name} | _plain(_flatten(content)) for name, content in counts])
    columns = [str(name) for name in values if name != "data" and any(map(_is_number, values[name]))]
    return build_table(
        values,
        {"Data": word("data")} | {_heading(name): _number(name) for name in columns},
        key="counts",
        title="Counts",
        caption="What was read, and what was left out, by cause.",
        n_labels=1,
        is_long=True,
    )


def _number(name: str) -> CellMaker:
    return lambda record: format_count(record[name]) if _is_number(record[name]) else MISSING


def roundtrip_table(roundtrips: Sequence[tuple[str, dict[str, Any]]]) -> Table | None:
    """How many lines survive the round trip through subwords, by dataset and language; None without measurements."""
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
    cells = {
        "Dataset": word("dataset"),
        "Language": word("language"),
        "lines": count("lines"),
        "restored, %": score("share"),
        "but for white space, %": score("share_but_white_space"),
    }
    return build_table(
        values,
        cells | {cause: _count_or_zero(cause) for cause in values.columns[6:]},
        key="roundtrip",
        title="Round trip of text",
        caption="Percentage of lines of development and test splits that are restored after tokenization, "
        "truecasing and BPE: exactly, and apart from white space. The other columns count the rest by cause.",
        n_labels=2,
        n_repeated=1,
    )


def _count_or_zero(name: str) -> CellMaker:
    return lambda record: format_count(0 if is_missing(record[name]) else record[name])


def training_table(histories: Sequence[History], settings: ReportSettings) -> Table | None:
    """Length, speed and best validation loss of each run."""
    if not histories:
        return None
    cells = _run_cells(settings) | {
        "updates": count("updates"),
        "epochs": count("epochs"),
        "minutes": score("minutes", digits=1),
        "tokens / s": _rounded("tokens_per_second"),
        "best dev loss": score("best_dev_loss", digits=3),
        "at update": count("best_step"),
    }
    return build_table(
        pd.DataFrame([_training_row(history) for history in histories]),
        cells,
        key="training",
        title="Training",
        caption="Updates in total, and the lowest validation loss with the update where it was reached. Tokens "
        "per second is the median of the logged rates.",
        n_labels=2,
        n_repeated=1,
        is_long=True,
    )


def _run_cells(settings: ReportSettings) -> dict[str, CellMaker]:
    return {
        "Dataset": word("dataset"),
        "System": lambda record: settings.label(record["system"]),
        "Seed": word("seed"),
    }


def _rounded(name: str) -> CellMaker:
    return lambda record: MISSING if is_missing(record[name]) else format_count(round(record[name]))


def passes_table(histories: Sequence[History], settings: ReportSettings) -> Table | None:
    """Passes over the data of each task and the time they took (Chen et al. 2021, Table 10).

    None when no training has passes over several tasks.
    """
    rows = [
        {"dataset": history.dataset, "system": history.system, "seed": history.seed}
        | {name: column(history.table, name).max() for name in _passes(history)}
        | {"hours": column(history.table, "seconds").max() / 3600}
        for history in histories
        if _passes(history)
    ]
    if not rows:
        return None
    values = pd.DataFrame(rows)
    digits = {str(name): 1 for name in values if str(name).startswith(PASSES)} | {"hours": 2}
    cells = {}
    for name, n_digits in digits.items():
        heading = name.removeprefix(PASSES)
        cells[heading] = score(name, digits=n_digits)
        published = [_published_effort(settings, row, name) for row in rows]
        if any(value is not None for value in published):
            values[f"{name} published"] = published
            cells[f"{heading}, published"] = score(f"{name} published", digits=n_digits)
    return build_table(
        values,
        _run_cells(settings) | cells,
        key="passes",
        title="Tasks in training",
        caption="Passes over the data of each task during the whole training.",
        n_labels=2,
        n_repeated=1,
    )


def _published_effort(settings: ReportSettings, row: dict[str, Any], name: str) -> float | None:
    """The passes or hours that a paper gives for the training of a row."""
    found = find_published(settings.published.get(row["system"]), settings.datasets.get(row["dataset"]), metric=name)
    return None if found is None else found.value


def _passes(history: History) -> list[str]:
    return [str(name) for name in history.table if str(name).startswith(PASSES)]


def _training_row(history: History) -> dict[str, Any]:
    table = history.table
    losses = column(table.set_index("step"), "dev_loss").dropna()
    return {
        "dataset": history.dataset,
        "system": history.system,
        "seed": history.seed,
        "updates": column(table, "step").max(),
        "epochs": column(table, "epoch").max(),
        "minutes": column(table, "seconds").max() / 60,
        "tokens_per_second": column(table, "tokens_per_second").median(),
        "best_dev_loss": losses.min(),
        "best_step": losses.idxmin() if len(losses) else float("nan"),
    }


def provenance_table(scores: pd.DataFrame) -> Table:
    """The commit, settings and data behind each score file."""
    keys = ["dataset", "system", "seed", "test", "commit", "fingerprint", "data"]
    return build_table(
        choose(scores, keys).drop_duplicates(),
        {key.capitalize(): word(key) for key in keys},
        key="provenance",
        title="Runs",
        caption="The commit of docmt (+ means uncommitted changes), the hash of the settings, and the first digits of "
        "the SHA-256 of the reference or test suite.",
        n_labels=7,
        n_repeated=1,
        is_long=True,
    )


def signature_table(scores: pd.DataFrame) -> Table:
    """How each metric was computed."""
    return build_table(
        choose(scores, ["metric", "signature"]).drop_duplicates().sort_values(by=["metric"], kind="stable"),
        {"Metric": word("metric"), "Signature": word("signature")},
        key="signatures",
        title="Signatures",
        caption="How each score was computed.",
        n_labels=1,
        n_remarks=1,
    )


def package_versions(scores: pd.DataFrame) -> list[str]:
    """The package versions that the scores were computed with."""
    return [str(versions) for versions in scores["versions"].dropna().unique()]


def _heading(name: str) -> str:
    return HEADINGS.get(name, name.replace("_", " "))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not is_missing(value)


def _plain(counts: dict[str, Any]) -> dict[str, Any]:
    """The entries that are single values."""
    return {key: value for key, value in counts.items() if key != "test" and not isinstance(value, list | dict)}


def _flatten(counts: dict[str, Any]) -> dict[str, Any]:
    """Flatten nested counts to `outer: inner`; counts of single inputs are in their own files and left out."""
    flat: dict[str, Any] = {}
    for key, value in counts.items():
        if key in ("inputs", "origin"):
            continue
        if isinstance(value, dict):
            flat |= {f"{key}: {inner}": number for inner, number in _flatten(value).items()}
        else:
            flat[key] = value
    return flat
