"""Pictures: learning curves, attention entropies, contrastive accuracy."""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from docmt.report import frames
from docmt.report.results import name_suites
from docmt.report.settings import ReportSettings
from docmt.report.sources import History
from docmt.report.summary import contrastive_scores

INK = "#1b1f24"
LEGEND_CHARACTERS_PER_INCH = 12.8

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.12,
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    # The same data give the same file.
    "svg.hashsalt": "docmt",
    "svg.fonttype": "path",
}
# Okabe and Ito's palette, which color-blind readers can tell apart, without black and yellow, which would vanish on
# a dark and on a white page.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
DASHES = ("-", "--", ":", "-.")
MARKERS = "osD^vPX"


@dataclass(frozen=True)
class Picture:
    """A figure with its title and caption.

    Attributes:
        key: name of its files.
        title: heading.
        caption: what it shows.
        svg: the figure as SVG on a transparent ground.
        png: the same as pixels on white, where there are any.
        is_long: whether the page shows it folded.
    """

    key: str
    title: str
    caption: str
    svg: str
    png: bytes | None
    is_long: bool = False

    @property
    def inline_svg(self) -> str:
        """The SVG element for an HTML page: it takes on the page's text color, and its ids are unique there."""
        svg = self.svg[self.svg.index("<svg") :].replace(INK, "currentColor")
        svg = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", svg, count=1)
        svg = re.sub(r'(<svg [^>]*?)height="[^"]*"', rf'\1role="img" aria-label="{self.key}"', svg, count=1)
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
        return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{self.key}-", svg)


class Line(TypedDict):
    """How matplotlib draws a system's line."""

    color: str
    linestyle: str


class Styles:
    """One color, dash and marker for each name in the legends, the same in every picture."""

    def __init__(self, systems: Sequence[str], settings: ReportSettings) -> None:
        labels = dict.fromkeys(settings.label(system) for system in systems)
        self._places = {label: i for i, label in enumerate(labels)}
        self._settings = settings

    def label(self, system: str) -> str:
        """The name in the legend."""
        # matplotlib reads `$` as mathematics and leaves names that begin with `_` out of legends.
        label = self._settings.label(system).replace("$", r"\$")
        return f" {label}" if label.startswith("_") else label

    def _place(self, system: str) -> int:
        return self._places[self._settings.label(system)]

    def color(self, system: str) -> str:
        """The color of lines, bars and bands."""
        return COLORS[self._place(system) % len(COLORS)]

    def line(self, system: str) -> Line:
        """Color and dashes."""
        place = self._place(system)
        return {"color": self.color(system), "linestyle": DASHES[place // len(COLORS) % len(DASHES)]}

    def marker(self, system: str) -> str:
        """The mark at each measurement."""
        return MARKERS[self._place(system) % len(MARKERS)]


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
    """Losses and attention entropies over updates, one picture of each kind per dataset."""
    datasets = dict.fromkeys(history.dataset for history in histories)
    pairs = [(curves, dataset) for curves in CURVES for dataset in datasets]
    pictures = []
    for curves, dataset in pairs:
        members = [history for history in histories if history.dataset == dataset]
        shown = [
            name for name in curves.panels if any(measured_values(history, name) is not None for history in members)
        ]
        if not shown:
            continue
        with matplotlib.rc_context(STYLE):
            figure = Figure(figsize=(8.6, 3.1), layout="constrained")
            axes = figure.subplots(1, len(shown), squeeze=False)[0]
            for panel, name in zip(axes, shown, strict=True):
                for system in dict.fromkeys(history.system for history in members):
                    series = [measured_values(history, name) for history in members if history.system == system]
                    found = [one for one in series if one is not None]
                    draw_seeds(panel, found, line=styles.line(system), label=styles.label(system))
                panel.set(title=curves.panels[name], xlabel="updates")
            axes[0].set_ylabel(curves.y_label)
            add_legend(figure, axes)
            pictures.append(
                finish_picture(figure, f"{curves.key}_{dataset}", f"{curves.title}: {dataset}", curves.caption)
            )
    return pictures


def measured_values(history: History, column: str) -> pd.Series | None:
    """The finite values of a column by update, or None when there are none."""
    if column not in history.table:
        return None
    series = frames.column(history.table.set_index("step"), column)
    finite = pd.Series(series[np.isfinite(series)])
    return pd.Series(finite[~finite.index.duplicated(keep="last")]) if len(finite) else None


def draw_seeds(axes: Axes, series: list[pd.Series], *, line: Line, label: str) -> None:
    """Thin lines for single seeds; their mean and range where all seeds have measurements."""
    if not series:
        return
    # A single measurement has no line: it needs a dot to be visible.
    marker = "o" if all(len(one) == 1 for one in series) else None
    table = pd.concat(series, axis=1)
    if len(series) > 1:
        for one in series:
            axes.plot(one.index, one.to_numpy(), linewidth=0.5, alpha=0.45, **line)
        table = table.dropna()
        axes.fill_between(
            table.index, table.min(axis=1), table.max(axis=1), color=line["color"], alpha=0.18, linewidth=0
        )
    axes.plot(table.index, table.mean(axis=1), label=label, marker=marker, **line)


def accuracy_bars(summary: pd.DataFrame, styles: Styles) -> list[Picture]:
    """Contrastive accuracy by phenomenon, with a line for guessing, one picture per dataset."""
    rows = name_suites(contrastive_scores(summary))
    pictures = []
    for dataset, members in frames.groups(rows, "dataset"):
        suites, systems = list(dict.fromkeys(members["suite"])), list(dict.fromkeys(members["system"]))
        width = 0.8 / len(systems)
        with matplotlib.rc_context(STYLE):
            figure = Figure(figsize=(8.6, 3.3), layout="constrained")
            axes = figure.subplots()
            for i, system in enumerate(systems):
                own = frames.keep(members, frames.column(members, "system") == system)
                own = own.set_index("suite").reindex(suites)
                places = np.arange(len(suites)) + (i - (len(systems) - 1) / 2) * width
                heights = own["mean"].to_numpy(dtype=float, na_value=np.nan)
                errors = np.clip([heights - own["low"].to_numpy(), own["high"].to_numpy() - heights], 0, None)
                axes.bar(places, heights, width * 0.92, color=styles.color(system), label=styles.label(system))
                axes.errorbar(
                    places, heights, np.nan_to_num(errors), fmt="none", ecolor=INK, elinewidth=0.8, capsize=1.5
                )
            chances = frames.means(members, "chance", by="suite")
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
    for dataset, members in frames.groups(rows, "dataset"):
        suites = dict(frames.groups(members, "suite"))
        suites = {name: rows for name, rows in suites.items() if len(set(rows["distance"])) > 1}
        if not suites:
            continue
        with matplotlib.rc_context(STYLE):
            figure = Figure(figsize=(8.6, 3.1), layout="constrained")
            panels = figure.subplots(1, len(suites), squeeze=False, sharey=True)[0]
            for axes, (suite, here) in zip(panels, suites.items(), strict=True):
                for system, unsorted in frames.groups(here, "system"):
                    own = unsorted.sort_values(by=["distance"])
                    places = own["distance"].to_numpy(dtype=float)
                    axes.plot(
                        places, own["mean"], marker=styles.marker(system), markersize=4, label=styles.label(system),
                        **styles.line(system),
                    )  # fmt: skip
                    low, high = own["low"].to_numpy(dtype=float), own["high"].to_numpy(dtype=float)
                    axes.fill_between(places, low, high, color=styles.color(system), alpha=0.12, linewidth=0)
                axes.axhline(here["chance"].mean(), color=INK, linestyle=(0, (4, 3)), linewidth=1)
                axes.set(title=suite.replace("_", " "), xlabel="distance (sentences)", ylim=(0, 105))
                axes.set_xticks(sorted(set(here["distance"].astype(int))))
            panels[0].set_ylabel("accuracy (%)")
            add_legend(figure, panels)
            caption = "Sentences between the antecedent and the word that depends on it. Dashed: guessing."
            pictures.append(finish_picture(figure, f"distance_{dataset}", f"Accuracy by distance: {dataset}", caption))
    return pictures


def add_legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend under all panels."""
    entries = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    # About this many characters fit below the panels; each entry takes 8 more for its line and margins.
    room = int(LEGEND_CHARACTERS_PER_INCH * figure.get_figwidth())
    columns = max(1, min(len(entries), room // (max(map(len, entries), default=0) + 8)))
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns)


def finish_picture(figure: Figure, key: str, title: str, caption: str) -> Picture:
    """The figure as SVG and PNG; the same figure gives the same bytes."""
    svg, png = io.StringIO(), io.BytesIO()
    figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    figure.savefig(png, format="png", dpi=160, facecolor="white", metadata={"Software": None})
    # The key becomes a file name and an id, and dataset names are the user's.
    return Picture(re.sub(r"[^A-Za-z0-9_-]", "_", key), title, caption, svg.getvalue(), png.getvalue())
