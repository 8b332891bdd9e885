"""Pictures laid out as those of a paper: scores over a fact about systems, and chosen columns of histories."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from docmt.errors import UserError
from docmt.files import atomic_path, atomic_writer
from docmt.report.dataframes import choose, column, is_missing, keep, records
from docmt.report.figures import draw_seeds, measured_values
from docmt.report.input_files import History
from docmt.report.paper_tables import PaperColumns, choose_rows, name_columns, score_keys
from docmt.report.pictures import MOST_BANDS, STYLE, Picture, add_legend, finish_picture
from docmt.report.score_tables import published_number
from docmt.report.settings import CurveFigure, ReportSettings, ScoreFigure
from docmt.report.styles import DASHES, Styles
from docmt.report.summary import summarize

PANELS_PER_ROW = 3
LOG_RATIO = 8
"""From this ratio of the largest to the smallest place on, the horizontal axis is logarithmic."""


@dataclass(frozen=True)
class Plot:
    """A picture with the numbers that it shows, in full precision."""

    picture: Picture
    values: pd.DataFrame


def study_styles(settings: ReportSettings, others: Sequence[str]) -> Styles:
    """The colors of a study: lines and systems of its figures first, so that one figure alone looks the same."""
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
    """One of the pictures that the settings describe, by its name there; None when nothing of it was measured.

    Args:
        name: key of `figures` or `curves`.
        settings: of the report.
        styles: as of `study_styles`.
        scores: the long table.
        paper_columns: what the config says of each system.
        histories: of trained runs, among them those of the figure.

    Raises:
        UserError: a system has no place on the horizontal axis.
    """
    if name in settings.figures:
        return _plot_scores(name, settings, styles, scores=scores, paper_columns=paper_columns)
    return _plot_curves(name, settings.curves[name], styles, histories)


def write_plot(prefix: Path, plot: Plot) -> None:
    """Write a picture as `.svg` and `.png`, and its numbers as `.csv`."""
    texts = {"svg": plot.picture.svg, "csv": plot.values.to_csv(index=False)}
    for suffix, text in texts.items():
        with atomic_writer(prefix.with_name(f"{prefix.name}.{suffix}")) as file:
            file.write(text)
    if plot.picture.png is not None:
        with atomic_path(prefix.with_name(f"{prefix.name}.png")) as path:
            path.write_bytes(plot.picture.png)


def _plot_scores(
    name: str, settings: ReportSettings, styles: Styles, *, scores: pd.DataFrame, paper_columns: PaperColumns
) -> Plot | None:
    layout = settings.figures[name]
    rows = choose_rows(scores.sort_values("seed", kind="stable"), layout)
    if rows.empty:
        return None
    places = _places(layout, paper_columns, where=f"report.figures.{name}")
    headings = name_columns(rows, layout)
    rows = rows.assign(panel=[headings[cell] for cell in score_keys(rows)])
    values = _score_values(rows, layout, settings, places)
    panels = list(dict.fromkeys(values["panel"]))
    axis = Axis.of([place for system, place in places.items() if system in set(values["system"])])
    with matplotlib.rc_context(STYLE):
        figure, grid = _make_panels(len(panels))
        for axes, panel in zip(grid, panels, strict=True):
            here = keep(values, column(values, "panel") == panel)
            for line in layout.lines:
                _draw_line(axes, line, records(keep(here, column(here, "line") == line)), axis, styles)
            for row in records(keep(rows, column(rows, "panel") == panel)):
                for line in (line for line, systems in layout.lines.items() if row["system"] in systems):
                    x = axis.position(places[row["system"]])
                    axes.plot(x, row["value"], ".", color=styles.color(line), markersize=3, alpha=0.5)
            axes.set(title=panel, xlabel=layout.x_label or layout.x or "")
            axis.apply(axes)
        grid[0].set_ylabel("score")
        add_legend(figure, grid)
        caption = f"{layout.note} {_describe_scores(rows, layout, settings)}".strip()
        picture = finish_picture(figure, name, layout.title, caption)
    return Plot(picture, values)


def _places(layout: ScoreFigure, paper_columns: PaperColumns, *, where: str) -> dict[str, float | str]:
    """The place of each system on the horizontal axis: words that are numbers, all of them, become numbers."""
    words: dict[str, float | str] = {}
    for system in layout.systems:
        place = layout.values.get(system, paper_columns.get(system, {}).get(layout.x or ""))
        if place is None:
            raise UserError(f"{where}: {system!r} has no place on the horizontal axis; add it to `values`")
        words[system] = place
    try:
        return {system: float(place) for system, place in words.items()}
    except ValueError:
        return {system: str(place) for system, place in words.items()}


@dataclass(frozen=True)
class Axis:
    """The horizontal axis: numbers on a linear or logarithmic scale, or words at equal steps.

    Attributes:
        places: what is marked, in order.
    """

    places: Sequence[float | str]

    @classmethod
    def of(cls, places: Sequence[float | str]) -> "Axis":
        """The axis of numbers, sorted, or of words in the order of their first appearance."""
        numbers = [place for place in places if isinstance(place, float)]
        return cls(sorted(set(numbers)) if numbers else list(dict.fromkeys(places)))

    def position(self, place: float | str) -> float:
        """Where a place is, in the units of the axis."""
        return place if isinstance(place, float) else float(self.places.index(place))

    def apply(self, axes: Axes) -> None:
        """Mark the places, and choose the scale."""
        positions = [self.position(place) for place in self.places]
        if isinstance(self.places[0], float) and min(positions) > 0 and max(positions) >= LOG_RATIO * min(positions):
            axes.set_xscale("log")
        axes.set_xticks(
            positions, [f"{place:,.10g}" if isinstance(place, float) else str(place) for place in self.places]
        )
        axes.minorticks_off()


def _score_values(
    rows: pd.DataFrame, layout: ScoreFigure, settings: ReportSettings, places: dict[str, float | str]
) -> pd.DataFrame:
    """One row per point: panel, line, system, x, mean, sd, seeds and the published number."""
    headings = name_columns(rows, layout)
    columns = {heading: cell for cell, heading in headings.items()}
    summary = summarize(rows, extra=["panel"])
    found = {(row["panel"], row["system"]): row for row in records(summary)}
    points: list[dict[str, Any]] = []
    for panel in headings.values():
        for line, systems in layout.lines.items():
            for system in systems:
                ours = found.get((panel, system), {})
                published = published_number(settings, system, columns[panel])
                if not ours and published is None:
                    continue
                point = {"panel": panel, "line": line, "system": system, "x": places[system]}
                point |= {key: ours.get(key, math.nan) for key in ("mean", "sd")} | {"seeds": ours.get("seeds", 0)}
                points.append(point | {"published": published.value if published else math.nan})
    return pd.DataFrame(points)


def _draw_line(axes: Axes, line: str, points: list[dict[str, Any]], axis: Axis, styles: Styles) -> None:
    """A line with error bars through our means, and a thin one with hollow marks through published numbers."""
    points = sorted(points, key=lambda point: axis.position(point["x"]))
    style, marker = styles.line(line), styles.marker(line)
    ours = [point for point in points if not is_missing(point["mean"])]
    if ours:
        places = [axis.position(point["x"]) for point in ours]
        means, deviations = ([point[key] for point in ours] for key in ("mean", "sd"))
        axes.errorbar(
            places, means, deviations, marker=marker, markersize=5, capsize=2.5, elinewidth=0.9,
            label=styles.label(line), **style,
        )  # fmt: skip
    published = [point for point in points if not is_missing(point["published"])]
    if published:
        places = [axis.position(point["x"]) for point in published]
        axes.plot(
            places, [point["published"] for point in published], marker=marker, markersize=6, markerfacecolor="none",
            color=style["color"], linestyle=(0, (1, 2)), linewidth=0.9, label=f"{styles.label(line)}, published",
        )  # fmt: skip


def _describe_scores(rows: pd.DataFrame, layout: ScoreFigure, settings: ReportSettings) -> str:
    numbers = [published_number(settings, system, cell) for cell in set(score_keys(rows)) for system in layout.systems]
    sources = sorted({f"{number.paper}, {number.table}" for number in numbers if number is not None})
    published = f" Hollow: published in {'; '.join(sources)}." if sources else ""
    return f"Mean over seeds with the sample deviation; dots: single seeds.{published}"


def _plot_curves(name: str, layout: CurveFigure, styles: Styles, histories: Sequence[History]) -> Plot | None:
    members = [
        history
        for history in histories
        if history.system in layout.systems and (layout.datasets is None or history.dataset in layout.datasets)
    ]
    members.sort(key=lambda history: layout.systems.index(history.system))
    if not members:
        return None
    wanted = list(dict.fromkeys(quantity for group in layout.panels.values() for quantity in group))
    found = [
        quantity for quantity in wanted if any(measured_values(history, quantity) is not None for history in members)
    ]
    headings = [heading for heading, group in layout.panels.items() if set(group) & set(found)]
    if not headings:
        return None
    datasets = list(dict.fromkeys(history.dataset for history in members))
    panels = [(dataset, heading) for dataset in datasets for heading in headings]
    with matplotlib.rc_context(STYLE):
        figure, grid = _make_panels(len(panels))
        for axes, (dataset, heading) in zip(grid, panels, strict=True):
            here = [history for history in members if history.dataset == dataset]
            _draw_panel(axes, here, layout.panels[heading], styles)
            axes.set(title=heading if len(datasets) == 1 else f"{dataset}: {heading}", xlabel="updates")
        grid[0].set_ylabel(layout.y_label)
        add_legend(figure, grid)
        lacking = [quantity for quantity in wanted if quantity not in found]
        sentences = (
            layout.note,
            "Line: mean over seeds; band: lowest to highest seed; each seed is a thin line.",
            f"Not measured: {', '.join(lacking)}." if lacking else "",
        )
        picture = finish_picture(figure, name, layout.title, " ".join(filter(None, sentences)))
    return Plot(picture, _curve_values(members, found))


def _draw_panel(axes: Axes, histories: Sequence[History], quantities: Sequence[str], styles: Styles) -> None:
    """A color for each system, and dashes for each of several quantities."""
    systems = dict.fromkeys(history.system for history in histories)
    for system in systems:
        runs = [history for history in histories if history.system == system]
        for place, quantity in enumerate(quantities):
            series = [found for run in runs if (found := measured_values(run, quantity)) is not None]
            look = styles.look(system)
            if len(quantities) > 1:
                look |= {"linestyle": DASHES[place % len(DASHES)]}
                look |= {"label": f"{styles.label(system)}, {quantity.replace('_', ' ')}"}
            draw_seeds(axes, series, look, has_band=len(systems) <= MOST_BANDS)


def _curve_values(histories: Sequence[History], quantities: Sequence[str]) -> pd.DataFrame:
    """One row per measurement: dataset, system, seed, step and the quantities."""
    tables = [
        history.table.reindex(columns=["step", *quantities])
        .dropna(subset=list(quantities), how="all")
        .assign(dataset=history.dataset, system=history.system, seed=history.seed)
        for history in histories
    ]
    return choose(pd.concat(tables, ignore_index=True), ["dataset", "system", "seed", "step", *quantities])


def _make_panels(count: int) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels, row by row."""
    n_columns = min(count, PANELS_PER_ROW)
    n_rows = math.ceil(count / n_columns)
    figure = Figure(figsize=(6.0 if count == 1 else 8.6, 3.3 * n_rows), layout="constrained")
    grid = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
    for axes in grid[count:]:
        axes.remove()
    return figure, grid[:count]
