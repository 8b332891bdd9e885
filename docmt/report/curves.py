"""Training curves: losses and attention entropies over updates."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from docmt.report.dataframes import column
from docmt.report.input_files import History
from docmt.report.pictures import Draw, Picture, Plot, draw_picture
from docmt.report.settings import CurveFigure
from docmt.report.styles import DASHES, OTHERS, LineStyle, Styles

MAX_BANDS = 6  # bands for more systems would overlap, so every system has separate panels
MEANS = "Line: mean over seeds."
MEANS_AND_SEEDS = "Line: mean over seeds; band: lowest to highest seed; each seed is a thin line."
N_MARKS = 8  # approximate number of marks on a curve
# Figures for every study, drawn like `report.curves` for all systems
TRAINING = {
    "learning_curves": CurveFigure(
        title="Learning curves",
        note="Label-smoothed loss per target token, in nats. Updates of the initial model count.",
        systems=["all"],
        panels={"Training loss": ["train_loss"], "Validation loss": ["dev_loss"]},
        y_label="loss",
    ),
    "entropies": CurveFigure(
        title="Attention entropies",
        note="Mean entropy of the attention distributions on the validation set, in bits.",
        systems=["all"],
        panels={
            "Cross-attention": ["entropy_cross"],
            "Encoder self-attention": ["entropy_encoder"],
            "Decoder self-attention": ["entropy_decoder"],
        },
        y_label="entropy (bits)",
    ),
}


def training_curves(
    histories: Sequence[History], styles: Styles, origins: Mapping[str, Sequence[str]] | None = None
) -> list[Picture]:
    """Draw losses and attention entropies over updates: per dataset one figure per kind, or two for many systems.

    `origins` lists the systems in a system's training chain, the last training first. All their updates count.
    """
    histories = [_with_all_updates(history, histories, origins or {}) for history in histories]
    systems = list(dict.fromkeys(history.system for history in histories))
    pictures = []
    for kind, layout in TRAINING.items():
        for dataset in dict.fromkeys(history.dataset for history in histories):
            changes = {"title": f"{layout.title}: {dataset}", "systems": systems, "datasets": [dataset]}
            plots = plot_curves(f"{kind}_{dataset}", layout.model_copy(update=changes), styles, histories)
            pictures += [plot.picture for plot in plots]
    return pictures


def _with_all_updates(history: History, histories: Sequence[History], origins: Mapping[str, Sequence[str]]) -> History:
    """Return the history with updates counted from the first training in the chain (mean over seeds)."""
    earlier_updates = 0.0
    for origin in origins.get(history.system, [])[1:]:
        n_updates = []
        for other in histories:
            if (other.dataset, other.system) == (history.dataset, origin):
                n_updates.append(column(other.table, "step").max())
        if n_updates:
            earlier_updates += fmean(n_updates)
    return replace(history, table=history.table.assign(step=column(history.table, "step") + earlier_updates))


# (values by update, line style) for every quantity, with one series per seed
Lines = list[tuple[list[pd.Series], LineStyle]]


def plot_curves(key: str, layout: CurveFigure, styles: Styles, histories: Sequence[History]) -> list[Plot]:
    """Plot history columns. If bands would overlap, a second figure has a panel per system."""
    members = []
    for history in histories:
        if history.system in layout.systems and (layout.datasets is None or history.dataset in layout.datasets):
            members.append(history)
    members.sort(key=lambda history: layout.systems.index(history.system))
    panels = _curve_panels(layout, styles, members)
    if not panels:
        return []
    wanted = dict.fromkeys(itertools.chain.from_iterable(layout.panels.values()))
    measured = []
    lacking = []
    for name in wanted:
        if any(measured_values(history, name) is not None for history in members):
            measured.append(name)
        else:
            lacking.append(name)
    tables = []
    for history in members:
        table = history.table.reindex(columns=["step", *measured]).dropna(subset=measured, how="all")
        tables.append(table.assign(**history.run))
    values = pd.concat(tables, ignore_index=True).reindex(columns=["dataset", "system", "seed", "step", *measured])
    systems: set[str] = set()
    has_bands = False
    for of_panel in panels.values():
        systems.update(of_panel)
        for lines in of_panel.values():
            has_bands = has_bands or any(len(series) > 1 for series, _ in lines)
    is_crowded = len(systems) > MAX_BANDS and has_bands
    draw = partial(draw_picture, x_label="updates", y_label=layout.y_label, is_long=key.startswith("entropies"))
    limits = {}
    if all(name.endswith("_loss") for name in wanted):
        for title, of_panel in panels.items():
            axis = loss_limits(of_panel)
            if axis is not None:
                limits[title] = axis
    remarks = []
    if lacking:
        remarks.append(f"Not measured: {', '.join(lacking)}.")
    remarks.append(_describe_limits(limits, panels, styles))
    together = []
    for title, of_panel in panels.items():
        lines = list(of_panel.values())
        axes = partial(_draw_curves, lines_in_color=lines, has_band=not is_crowded, limits=limits.get(title))
        together.append((title, axes))
    caption = _caption(layout.note, _describe_lines(has_bands=has_bands, is_crowded=is_crowded), *remarks)
    pictures = [draw(together, key=key, title=layout.title, caption=caption)]
    if is_crowded:
        apart = _panels_by_system(panels, limits, styles)
        title = f"{layout.title}, by system"
        caption = _caption("A panel for each system, the others in gray.", layout.note, MEANS_AND_SEEDS, *remarks)
        pictures.append(draw(apart, key=f"{key}_by_system", title=title, caption=caption, n_columns=4, height=2.1))
    return [Plot(picture, values) for picture in pictures]


def _panels_by_system(
    panels: Mapping[str, Mapping[str, Lines]], limits: Mapping[str, tuple[float, float]], styles: Styles
) -> list[tuple[str, Draw] | None]:
    """Return a panel per heading and system, with the other systems in gray. None fills up rows of four panels."""
    apart: list[tuple[str, Draw] | None] = []
    for title, of_panel in panels.items():
        for system, lines in of_panel.items():
            others = [other for name, other in of_panel.items() if name != system]
            axes = partial(_draw_curves, lines_in_color=[lines], others=others, limits=limits.get(title))
            apart.append((f"{styles.label(system)}\n{title}", axes))
        apart += [None] * (-len(apart) % 4)
    return apart


def _describe_lines(*, has_bands: bool, is_crowded: bool) -> str:
    if is_crowded:
        return MEANS
    if has_bands:
        return MEANS_AND_SEEDS
    return ""


def _caption(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def loss_limits(of_panel: Mapping[str, Lines]) -> tuple[float, float] | None:
    """Return the ends of an axis up to the upper fence of the losses (Tukey 1977). None if no loss is higher.

    The losses of the first updates would leave no room for the differences between the last ones.
    """
    runs: list[pd.Series] = []
    for series, _ in itertools.chain.from_iterable(of_panel.values()):
        runs += series
    losses = pd.concat(runs)
    lowest = losses.min()
    first = losses.quantile(0.25)
    third = losses.quantile(0.75)
    fence = third + 1.5 * (third - first)
    if first == third or losses.max() <= fence:
        return None
    return float(lowest - 0.05 * (fence - lowest)), float(fence)


def _describe_limits(
    limits: Mapping[str, tuple[float, float]], panels: Mapping[str, Mapping[str, Lines]], styles: Styles
) -> str:
    """Return a note on losses above the axes, with the systems that have no lower losses."""
    if not limits:
        return ""
    above = []
    for title, (_, top) in limits.items():
        for system, lines in panels[title].items():
            if all(pd.concat(series).min() > top for series, _ in lines):
                above.append(f"{styles.label(system)} ({title})")
    names = ""
    if above:
        names = f", and with them all losses of {', '.join(above)}"
    return f"Losses above Q3 + 1.5 (Q3 − Q1) are cut off{names}."


def _curve_panels(layout: CurveFigure, styles: Styles, histories: Sequence[History]) -> dict[str, dict[str, Lines]]:
    """Return the measurements by heading and system."""
    datasets: dict[str, dict[str, list[History]]] = {}  # by name and system
    for history in histories:
        datasets.setdefault(history.dataset, {}).setdefault(history.system, []).append(history)
    panels: dict[str, dict[str, Lines]] = {}
    for (dataset, systems), (heading, quantities) in itertools.product(datasets.items(), layout.panels.items()):
        title = heading
        if len(datasets) > 1:
            title = f"{dataset}: {heading}"
        for system, runs in systems.items():
            for index, quantity in enumerate(quantities):
                series = []
                for run in runs:
                    values = measured_values(run, quantity)
                    if values is not None:
                        series.append(values)
                style = styles.marked_line(system)
                if len(quantities) > 1:  # the color identifies the system, and dashes its quantities
                    style |= {"linestyle": DASHES[index % len(DASHES)]}
                    style |= {"label": f"{style['label']}, {quantity.replace('_', ' ')}"}
                if series:
                    panels.setdefault(title, {}).setdefault(system, []).append((series, style))
    return panels


def _draw_curves(
    axes: Axes,
    *,
    lines_in_color: Sequence[Lines],
    others: Sequence[Lines] = (),
    has_band: bool = True,
    limits: tuple[float, float] | None = None,
) -> None:
    """Draw the mean over seeds up to the end of the shortest one. A band shows the range, thin lines the seeds.

    `limits` are the lower and the upper end of the vertical axis. None: all values.
    """
    curves = [(series, OTHERS, False) for series, _ in itertools.chain.from_iterable(others)]
    for series, style in itertools.chain.from_iterable(lines_in_color):
        curves.append((series, style, has_band and len(series) > 1))
    for series, style, has_spread in curves:
        table = pd.concat(series, axis=1)
        # Seeds that stopped early would shift the mean, so the mean ends with the shortest seed. Seeds can be measured
        # after different updates, for example after each epoch.
        if len(series) > 1:
            table = table.sort_index().interpolate(method="index", limit_area="inside").dropna()
        if has_spread:
            for values in series:
                axes.plot(values.index, values.to_numpy(), linewidth=0.5, alpha=0.45, color=style["color"])
            low, high = table.min(axis=1), table.max(axis=1)
            axes.fill_between(table.index, low, high, color=style["color"], alpha=0.18, linewidth=0)
        axes.plot(table.index, table.mean(axis=1), markevery=max(1, len(table) // N_MARKS), **style)
    if limits is not None:
        axes.set_ylim(limits)


def measured_values(history: History, name: str) -> pd.Series | None:
    """Return a column's finite values by update, or None without any."""
    series = column(history.table.set_index("step"), name)
    finite = pd.Series(series[np.isfinite(series)])
    return None if finite.empty else finite
