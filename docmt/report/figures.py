"""Pictures: learning curves, attention entropies, contrastive accuracy."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from docmt.report import dataframes
from docmt.report.input_files import History
from docmt.report.pictures import INK, STYLE, Picture, add_legend, draw_systems, finish_picture
from docmt.report.styles import Look, Styles
from docmt.report.summary import contrastive_scores, name_suites

MOST_TICKS = 8
"""Distances that are all marked at an axis; of more, some are."""
MARKS = 8
"""About how many marks a curve has."""


@dataclass(frozen=True)
class Curves:
    """A kind of picture of histories: a panel for each of some columns, with the heading of each."""

    key: str
    title: str
    caption: str
    y_label: str
    panels: dict[str, str]


CURVES = (
    Curves(
        key="learning_curves",
        title="Learning curves",
        caption="Label-smoothed loss per target token, in nats. Line: mean over seeds; band: lowest to "
        "highest seed; each seed alone is a thin line.",
        y_label="loss",
        panels={"train_loss": "Training loss", "dev_loss": "Validation loss"},
    ),
    Curves(
        key="entropies",
        title="Attention entropies",
        caption="Mean entropy of the attention distributions on the validation set, in bits. Line: mean over seeds; "
        "band: lowest to highest seed.",
        y_label="entropy (bits)",
        panels={
            "entropy_cross": "Cross-attention",
            "entropy_encoder": "Encoder self-attention",
            "entropy_decoder": "Decoder self-attention",
        },
    ),
)


def training_curves(histories: Sequence[History], styles: Styles) -> list[Picture]:
    """Losses and attention entropies over updates, one picture of each kind per dataset; two where systems are many."""
    datasets = dict.fromkeys(history.dataset for history in histories)
    pairs = [(curves, dataset) for curves in CURVES for dataset in datasets]
    pictures = []
    for curves, dataset in pairs:
        members = [history for history in histories if history.dataset == dataset]
        series = {
            (heading, system): found
            for name, heading in curves.panels.items()
            for system in dict.fromkeys(history.system for history in members)
            if (found := _measured_seeds(members, system, name))
        }
        if series:
            described = {"key": f"{curves.key}_{dataset}", "title": f"{curves.title}: {dataset}"}
            axes = {"x_label": "updates", "y_label": curves.y_label}
            several = any(len(found) > 1 for found in series.values())
            pictures += draw_systems(
                series, draw_seeds, styles, caption=curves.caption, has_bands=several, **described, **axes
            )
    return pictures


def _measured_seeds(histories: Sequence[History], system: str, name: str) -> list[pd.Series]:
    series = [measured_values(history, name) for history in histories if history.system == system]
    return [one for one in series if one is not None]


def measured_values(history: History, column: str) -> pd.Series | None:
    """The finite values of a column by update, or None when there are none."""
    if column not in history.table:
        return None
    series = dataframes.column(history.table.set_index("step"), column)
    finite = pd.Series(series[np.isfinite(series)])
    return pd.Series(finite[~finite.index.duplicated(keep="last")]) if len(finite) else None


def draw_seeds(axes: Axes, values: list[pd.Series], look: Look, *, has_band: bool = True) -> None:
    """The mean over seeds where all have measurements; with their range, and a thin line for each seed."""
    if not values:
        return
    table = pd.concat(values, axis=1)
    if len(values) > 1:
        table = table.dropna()
    if len(values) > 1 and has_band:
        for one in values:
            axes.plot(one.index, one.to_numpy(), linewidth=0.5, alpha=0.45, color=look["color"])
        low, high = table.min(axis=1), table.max(axis=1)
        axes.fill_between(table.index, low, high, color=look["color"], alpha=0.18, linewidth=0)
    axes.plot(table.index, table.mean(axis=1), markevery=max(1, len(table) // MARKS), **look)


def accuracy_bars(summary: pd.DataFrame, styles: Styles) -> list[Picture]:
    """Contrastive accuracy by phenomenon, with a line for guessing, one picture per dataset."""
    rows = name_suites(contrastive_scores(summary))
    pictures = []
    for dataset, members in dataframes.groups(rows, "dataset"):
        suites, systems = list(dict.fromkeys(members["suite"])), list(dict.fromkeys(members["system"]))
        width = 0.8 / len(systems)
        with matplotlib.rc_context(STYLE):
            figure = Figure(figsize=(8.6, 3.3), layout="constrained")
            axes = figure.subplots()
            for i, system in enumerate(systems):
                own = dataframes.keep(members, dataframes.column(members, "system") == system)
                own = own.set_index("suite").reindex(suites)
                places = np.arange(len(suites)) + (i - (len(systems) - 1) / 2) * width
                heights = own["mean"].to_numpy(dtype=float, na_value=np.nan)
                errors = np.clip([heights - own["low"].to_numpy(), own["high"].to_numpy() - heights], 0, None)
                axes.bar(
                    places, heights, width * 0.92, color=styles.color(system), hatch=styles.hatch(system),
                    label=styles.label(system),
                )  # fmt: skip
                axes.errorbar(
                    places, heights, np.nan_to_num(errors), fmt="none", ecolor=INK, elinewidth=0.8, capsize=1.5
                )
            chances = dataframes.means(members, "chance", by="suite")
            for place, chance in enumerate(chances[suite] for suite in suites):
                axes.plot([place - 0.5, place + 0.5], [chance, chance], color=INK, linestyle=(0, (4, 3)), linewidth=1)
            axes.set(ylim=(0, 105), xlim=(-0.6, len(suites) - 0.4), ylabel="accuracy (%)")
            axes.set_xticks(range(len(suites)), [suite.replace("_", " ") for suite in suites])
            axes.grid(axis="x", visible=False)
            add_legend(figure, [axes])
            caption = (
                "Share of items whose right candidate scores strictly highest. Whiskers: 95 % Wilson interval of one "
                "seed, or one deviation of several. Dashed: guessing."
            )
            pictures.append(
                finish_picture(figure, f"contrastive_{dataset}", f"Contrastive accuracy: {dataset}", caption)
            )
    return pictures


def distance_lines(summary: pd.DataFrame, styles: Styles) -> list[Picture]:
    """Contrastive accuracy over distance, a panel per phenomenon with at least two distances."""
    rows = name_suites(contrastive_scores(summary, by="distance"))
    pictures = []
    for dataset, members in dataframes.groups(rows, "dataset"):
        suites = dict(dataframes.groups(members, "suite"))
        suites = {name: rows for name, rows in suites.items() if len(set(rows["distance"])) > 1}
        scores = {
            (suite.replace("_", " "), system): own.sort_values(by=["distance"])
            for suite, here in suites.items()
            for system, own in dataframes.groups(here, "system")
        }
        if scores:
            described = {
                "key": f"distance_{dataset}",
                "title": f"Accuracy by distance: {dataset}",
                "caption": "Sentences between the antecedent and the word that depends on it. Dashed: guessing.",
            }
            described |= {"x_label": "distance (sentences)", "y_label": "accuracy (%)"}
            pictures += draw_systems(scores, _draw_distances, styles, has_bands=True, **described)
    return pictures


def _draw_distances(axes: Axes, values: pd.DataFrame, look: Look, *, has_band: bool) -> None:
    places = values["distance"].to_numpy(dtype=float)
    axes.plot(places, values["mean"], **look)
    if has_band:
        low, high = values["low"].to_numpy(dtype=float), values["high"].to_numpy(dtype=float)
        axes.fill_between(places, low, high, color=look["color"], alpha=0.12, linewidth=0)
    axes.axhline(float(values["chance"].to_numpy(dtype=float).mean()), color=INK, linestyle=(0, (4, 3)), linewidth=1)
    axes.set(ylim=(0, 105))
    if len(places) <= MOST_TICKS:
        axes.set_xticks(places)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=MOST_TICKS, integer=True))
