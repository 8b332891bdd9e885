"""Report figures: accuracy by phenomenon and distance, scores by system property."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from docmt.errors import UserError
from docmt.evaluation.contrastive_accuracy import sort_ranges
from docmt.files import atomic_path, atomic_writer
from docmt.report.curves import plot_curves
from docmt.report.dataframes import column, groups, means, records, select
from docmt.report.input_files import History
from docmt.report.pictures import Draw, Picture, Plot, draw_picture
from docmt.report.score_cells import published_number
from docmt.report.settings import ReportSettings, ScoreFigure
from docmt.report.styles import BARS, CHANCE, INK, LineStyle, Styles
from docmt.report.summary import (
    MIN_ITEMS,
    PaperColumns,
    ScoreKey,
    choose_rows,
    contrastive_scores,
    describe_missing,
    name_columns,
    name_suites,
    score_keys,
    summarize,
)

WHISKERS = "Whiskers: 95 % Wilson interval of one seed, or one deviation of several. Dashed: chance."
MAX_TICK_CHARACTERS = 28  # wider labels would overlap in a column of a paper
LOG_RATIO = 8  # minimum ratio between the largest and the smallest position for a logarithmic horizontal axis


def study_styles(settings: ReportSettings, others: Sequence[str]) -> Styles:
    """Return a study's styles. Lines and systems in figures have the first colors, as in a single figure."""
    return Styles([*settings.legend, *others], settings)


def draw_plot(
    name: str,
    settings: ReportSettings,
    styles: Styles,
    *,
    scores: pd.DataFrame,
    paper_columns: PaperColumns,
    histories: list[History],
) -> Plot | None:
    """Draw a figure in the settings' `figures` or `curves` by name. None without measurements.

    `scores` is the long table, and `paper_columns` contains system properties. Other systems' histories are left out.
    """
    if name in settings.figures:
        return _plot_scores(name, settings, styles, scores=scores, paper_columns=paper_columns)
    return next(iter(plot_curves(name, settings.curves[name], styles, histories)), None)


def write_plot(prefix: Path, plot: Plot) -> None:
    """Write a figure as `.svg`, `.png` and `.pdf`, and its data as `.csv`."""
    for suffix, text in {"svg": plot.picture.svg, "csv": plot.values.to_csv(index=False)}.items():
        with atomic_writer(prefix.with_name(f"{prefix.name}.{suffix}")) as file:
            file.write(text)
    for suffix, data in {"png": plot.picture.png, "pdf": plot.picture.pdf}.items():
        with atomic_path(prefix.with_name(f"{prefix.name}.{suffix}")) as path:
            path.write_bytes(data)


def accuracy_bars(summary: pd.DataFrame, styles: Styles) -> list[Picture]:
    """Draw contrastive accuracy by phenomenon with a line for chance, one figure per dataset."""
    pictures = []
    for dataset, rows in groups(name_suites(contrastive_scores(summary)), "dataset"):
        picture = draw_picture(
            [("", partial(_draw_bars, rows=rows, styles=styles))],
            key=f"contrastive_{dataset}",
            title=f"Contrastive accuracy: {dataset}",
            caption=f"Share of items whose right candidate scores strictly highest. {WHISKERS}",
            y_label="accuracy (%)",
        )
        pictures.append(picture)
    return pictures


def _draw_bars(axes: Axes, *, rows: pd.DataFrame, styles: Styles) -> None:
    suites = list(dict.fromkeys(rows["suite"]))
    n_systems = rows["system"].nunique()
    width = 0.8 / n_systems
    for i, (system, scores) in enumerate(groups(rows, "system")):
        scores = scores.set_index("suite").reindex(suites)
        centers = np.arange(len(suites)) + (i - (n_systems - 1) / 2) * width
        axes.bar(centers, scores["mean"].to_numpy(dtype=float, na_value=np.nan), width * 0.92, **styles.bar(system))
        axes.errorbar(centers, scores["mean"], _whiskers(scores), fmt="none", ecolor=INK, **BARS)
    # Chance depends on the number of candidates, so every phenomenon has a separate line.
    chances = means(rows, "chance", by="suite")
    for index, suite in enumerate(suites):
        axes.plot([index - 0.5, index + 0.5], [chances[suite]] * 2, **CHANCE)
    axes.set(ylim=(0, 105), xlim=(-0.6, len(suites) - 0.4))
    axes.set_xticks(range(len(suites)), [suite.replace("_", " ") for suite in suites])
    axes.grid(axis="x", visible=False)


def _whiskers(rows: pd.DataFrame) -> np.ndarray:
    """Return error bar lengths below and above the means, float64 [2, rows]. 0 without an interval."""
    mean, low, high = rows[["mean", "low", "high"]].to_numpy(dtype=float, na_value=np.nan).T
    return np.nan_to_num(np.clip([mean - low, high - mean], 0, None))


def distance_lines(summary: pd.DataFrame, styles: Styles) -> list[Picture]:
    """Draw contrastive accuracy by distance range, a panel per phenomenon with at least two ranges."""
    pictures = []
    for dataset, rows in groups(name_suites(contrastive_scores(summary, by="distance")), "dataset"):
        panels: list[tuple[str, Draw]] = []
        for suite, members in groups(rows, "suite"):
            if column(members, "distance").nunique() > 1:
                panels.append((suite.replace("_", " "), partial(_draw_distances, rows=members, styles=styles)))
        if panels:
            picture = draw_picture(
                panels,
                key=f"distance_{dataset}",
                title=f"Accuracy by distance: {dataset}",
                caption="Sentences between the antecedent and the word that depends on it, with the number of items "
                f"(at least {MIN_ITEMS}). {WHISKERS}",
                x_label="distance (sentences)",
                y_label="accuracy (%)",
                n_columns=2,
            )
            pictures.append(picture)
    return pictures


def _draw_distances(axes: Axes, *, rows: pd.DataFrame, styles: Styles) -> None:
    sizes = dict(zip(rows["distance"], rows["n"], strict=True))
    ranges = sort_ranges(sizes)
    n_systems = rows["system"].nunique()
    for i, (system, scores) in enumerate(groups(rows, "system")):
        scores = scores.set_index("distance").reindex(ranges)
        # Next to each other, so that many systems' whiskers can be distinguished.
        centers = np.arange(len(ranges)) + (i - (n_systems - 1) / 2) * min(0.08, 0.6 / n_systems)
        axes.errorbar(centers, scores["mean"], _whiskers(scores), **BARS, **styles.marked_line(system))
    chances = means(rows, "chance", by="distance")
    axes.plot(range(len(ranges)), [chances[distance] for distance in ranges], **CHANCE)
    axes.set(ylim=(0, 105), xlim=(-0.5, len(ranges) - 0.5))
    axes.set_xticks(range(len(ranges)), [f"{distance}\n({sizes[distance]:,})" for distance in ranges])


def _plot_scores(
    name: str, settings: ReportSettings, styles: Styles, *, scores: pd.DataFrame, paper_columns: PaperColumns
) -> Plot | None:
    """Plot scores by system property: a panel per test and metric, a line per system group."""
    layout = settings.figures[name]
    rows = choose_rows(scores.sort_values("seed", kind="stable"), layout)
    if rows.empty:
        return None
    x_values = _find_x_values(layout, paper_columns, where=f"report.figures.{name}")
    headings = name_columns(rows, layout)
    rows = rows.assign(panel=[headings[key] for key in score_keys(rows)])
    points = _points(rows, layout, settings, x_values, headings)
    systems = set(points.dropna(subset=["mean", "published"], how="all")["system"])
    positions = axis_positions(x_value for system, x_value in x_values.items() if system in systems)
    caption = f"{layout.note} Mean over seeds with the sample deviation; dots: single seeds.".strip()
    missing = describe_missing(systems, layout, settings)
    if missing:
        caption += f" {missing}"
    sources: set[str] = set()
    for key, system in itertools.product(headings, layout.systems):
        number = published_number(settings, system, key)
        if number is not None:
            sources.add(f"{number.paper}, {number.table}")
    if sources:
        caption += f" Hollow: published in {'; '.join(sorted(sources))}."
    panels: list[tuple[str, Draw]] = []
    for panel, of_panel in groups(points, "panel"):
        runs = select(rows, panel=panel)
        draw = partial(_draw_points, points=of_panel, runs=runs, positions=positions, styles=styles)
        panels.append((panel, draw))
    picture = draw_picture(
        panels,
        key=name,
        title=layout.title,
        caption=caption,
        x_label=layout.x_label or layout.x or "",
        y_label="score",
    )
    return Plot(picture, points)


def _find_x_values(layout: ScoreFigure, paper_columns: PaperColumns, *, where: str) -> Mapping[str, float | str]:
    """Return horizontal axis values by system, as floats if all values are finite numbers."""
    words: dict[str, float | str] = {}
    for system in layout.systems:
        x_value = layout.x_values.get(system, paper_columns.get(system, {}).get(layout.x or ""))
        if x_value is None:
            raise UserError(f"{where}: {system!r} has no value for the horizontal axis; add one to `x_values`")
        words[system] = x_value
    # A single word makes all values words, because "512" has no common scale with "full" or "inf".
    with suppress(ValueError):
        numbers = {system: float(x_value) for system, x_value in words.items()}
        if all(map(math.isfinite, numbers.values())):
            return numbers
    return {system: str(x_value) for system, x_value in words.items()}


def axis_positions(x_values: Iterable[float | str]) -> dict[float | str, float]:
    """Return horizontal axis positions by value. Numbers keep their value in sorted order. Words are spaced evenly."""
    distinct = dict.fromkeys(x_values)
    numbers = sorted(x_value for x_value in distinct if isinstance(x_value, float))
    if numbers:
        return {number: number for number in numbers}
    return {x_value: float(i) for i, x_value in enumerate(distinct)}


def _points(
    rows: pd.DataFrame,
    layout: ScoreFigure,
    settings: ReportSettings,
    x_values: Mapping[str, float | str],
    headings: Mapping[ScoreKey, str],
) -> pd.DataFrame:
    """Return one row per point: panel, line, system, x, mean, sd, seeds and published number."""
    summaries = {(row["panel"], row["system"]): row for row in records(summarize(rows, extra=["panel"]))}
    points: list[dict[str, Any]] = []
    for key, panel in headings.items():
        for line, systems in layout.series.items():
            for system in systems:
                published = published_number(settings, system, key)
                score = summaries.get((panel, system), {})
                if not score and published is None:
                    continue
                point = {"panel": panel, "line": line, "system": system, "x": x_values[system]}
                for name in ("mean", "sd"):
                    point[name] = score.get(name, math.nan)
                point["seeds"] = score.get("seeds", 0)
                point["published"] = math.nan
                if published is not None:
                    point["published"] = published.value
                points.append(point)
    return pd.DataFrame(points)


def _draw_points(
    axes: Axes, *, points: pd.DataFrame, runs: pd.DataFrame, positions: dict[float | str, float], styles: Styles
) -> None:
    """Draw the study's means with error bars and dots for seeds, and published numbers with thin lines."""
    for line, of_line in groups(points, "line"):
        of_line = of_line.assign(at=[positions[x_value] for x_value in of_line["x"]]).sort_values("at", kind="stable")
        style: LineStyle = styles.line(line) | {"marker": styles.marker(line)}
        label = styles.label(line)
        ours = of_line.dropna(subset="mean")
        published = of_line.dropna(subset="published")
        if len(ours):
            bars: LineStyle = {"markersize": 5, "capsize": 2.5, "elinewidth": 0.9, "label": label}
            axes.errorbar(ours["at"], ours["mean"], ours["sd"], **bars, **style)
        if len(published):
            style |= {"markersize": 6, "markerfacecolor": "none", "linestyle": (0, (1, 2)), "linewidth": 0.9}
            axes.plot(published["at"], published["published"], label=f"{label}, published", **style)
        for system, at in zip(of_line["system"], of_line["at"], strict=True):
            values = select(runs, system=system)["value"]
            axes.plot([at] * len(values), values, ".", color=styles.color(line), markersize=3, alpha=0.5)
    first, last = min(positions.values()), max(positions.values())
    if 0 < first <= last / LOG_RATIO:  # words begin at 0
        axes.set_xscale("log")
    tick_labels = []
    for x_value in positions:
        if isinstance(x_value, float):
            tick_labels.append(f"{x_value:z,.10g}".replace("-", "−"))
        else:
            tick_labels.append(str(x_value))
    rotation = {}
    if sum(map(len, tick_labels)) > MAX_TICK_CHARACTERS:
        rotation = {"rotation": 45, "horizontalalignment": "right", "rotation_mode": "anchor"}
    axes.set_xticks(list(positions.values()), tick_labels, **rotation)
    axes.minorticks_off()
