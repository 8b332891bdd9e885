"""The report: Markdown, one HTML page, and its tables and figures as files."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
import pandas as pd

from docmt import __version__
from docmt.files import atomic_path, atomic_writer
from docmt.report.costs import costs_table, read_costs
from docmt.report.data import (
    counts_table,
    overlap_table,
    package_versions,
    passes_table,
    provenance_table,
    roundtrip_table,
    signature_table,
    statistics_table,
    training_table,
)
from docmt.report.discourse import parser_table, relation_table, segmenter_table, tree_pictures, tree_table
from docmt.report.figures import (
    Picture,
    Styles,
    accuracy_bars,
    distance_lines,
    entropy_curves,
    learning_curves,
)
from docmt.report.layouts import Facts, laid_out_table
from docmt.report.results import contrastive_table, further_table, main_table, split_table
from docmt.report.settings import ReportSettings
from docmt.report.sources import (
    History,
    read_counts,
    read_histories,
    read_measurements,
    read_overlaps,
    read_statistics,
    read_tree_tables,
)
from docmt.report.summary import summarise
from docmt.report.tables import Table, escape_markdown, to_latex, to_markdown, to_text

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Section:
    """A chapter of the page: tables, then pictures."""

    key: str
    title: str
    tables: list[Table] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)


@dataclass(frozen=True)
class TreeFiles:
    """What the section on trees is made of; names and files are those of the command line.

    Attributes:
        statistics, relations: CSV files of `docmt discourse statistics`.
        segmenters, parsers: `NAME=FILE` of their evaluations.
        pictures: `NAME=FILE` of SVG files.
    """

    statistics: Sequence[Path] = ()
    relations: Sequence[Path] = ()
    segmenters: Sequence[str] = ()
    parsers: Sequence[str] = ()
    pictures: Sequence[str] = ()


@dataclass(frozen=True)
class Report:
    """All that the page shows."""

    title: str
    sections: list[Section]
    versions: list[str]
    summary_line: str

    @property
    def tables(self) -> list[Table]:
        return [table for section in self.sections for table in section.tables]

    @property
    def pictures(self) -> list[Picture]:
        return [picture for section in self.sections for picture in section.pictures]

    def printed(self) -> str:
        """The tables of the study, the main table and the contrastive table as plain text."""
        shown = [
            to_text(table)
            for section in self.sections
            for table in section.tables
            if section.key == "tables" or table.key in ("results", "contrastive")
        ]
        return "\n\n".join(shown) or "no scores of translations or contrastive test sets"


def build_report(
    scores: pd.DataFrame,
    settings: ReportSettings,
    *,
    facts: Facts | None = None,
    histories: Sequence[str] = (),
    statistics: Sequence[Path] = (),
    overlaps: Sequence[str] = (),
    counts: Sequence[str] = (),
    roundtrips: Sequence[str] = (),
    trees: TreeFiles | None = None,
    benchmarks: Path | None = None,
    logs: Path | None = None,
) -> Report:
    """Make tables and pictures of the long table and of the files named as on the command line.

    Raises UserError when a file is missing or of another form.
    """
    summary = summarise(scores)
    runs = read_histories(histories)
    datasets = list(dict.fromkeys([*scores["dataset"], *(run.dataset for run in runs)]))
    styles = Styles([*scores["system"], *(run.system for run in runs)], settings)
    laid_out = [laid_out_table(scores, name, settings, facts or {}) for name in settings.tables]
    sections = [
        _section("tables", "Tables of the study", laid_out),
        _section("translation", "Translation", [main_table(summary, settings), further_table(summary, settings)]),
        _section(
            "discourse",
            "Discourse",
            [
                contrastive_table(summary, settings),
                split_table(summary, settings, by="distance"),
                split_table(summary, settings, by="kind"),
            ],
            accuracy_bars(summary, styles) + distance_lines(summary, styles),
        ),
        _trees_section(trees or TreeFiles()),
        _training_section(runs, settings, styles),
        _section(
            "data",
            "Data",
            [
                statistics_table(read_statistics(statistics), settings),
                overlap_table(read_overlaps(overlaps, datasets)),
                counts_table(read_counts(counts, datasets)),
                roundtrip_table(read_measurements(roundtrips, key="languages")),
            ],
        ),
        _costs_section(benchmarks, logs, runs),
        _section("provenance", "How the numbers were made", [signature_table(scores), provenance_table(scores)]),
    ]
    return Report(
        title=settings.title,
        sections=[section for section in sections if section.tables or section.pictures],
        versions=package_versions(scores),
        summary_line=_describe(scores),
    )


def _section(key: str, title: str, tables: Sequence[Table | None], pictures: Sequence[Picture] = ()) -> Section:
    return Section(key, title, [table for table in tables if table is not None], list(pictures))


def _training_section(runs: list[History], settings: ReportSettings, styles: Styles) -> Section:
    pictures = learning_curves(runs, styles) + entropy_curves(runs, styles)
    return _section("training", "Training", [training_table(runs, settings), passes_table(runs, settings)], pictures)


def _trees_section(files: TreeFiles) -> Section:
    tables = [
        tree_table(read_tree_tables(files.statistics, needed=())),
        relation_table(
            read_tree_tables(files.relations, needed=("relation", "arcs", "percent", "between_sentences_percent"))
        ),
        segmenter_table(read_measurements(files.segmenters, key="scores")),
        parser_table(read_measurements(files.parsers, key="parseval")),
    ]
    return _section("trees", "Discourse: EDUs and trees", tables, tree_pictures(files.pictures))


def _costs_section(benchmarks: Path | None, logs: Path | None, runs: list[History]) -> Section:
    """Of what led to the report; a page cannot hold its own cost."""
    costs = read_costs(benchmarks, logs=logs, histories=runs, without=("render",)) if benchmarks else []
    return _section("costs", "Costs", [costs_table(costs)])


def _describe(scores: pd.DataFrame) -> str:
    numbers = {
        "dataset": scores["dataset"].nunique(),
        "system": scores["system"].nunique(),
        "run": len(scores[["dataset", "system", "seed"]].drop_duplicates()),
        "score": len(scores),
    }
    words = ", ".join(f"{number:,} {name}{'s' if number != 1 else ''}" for name, number in numbers.items())
    commits = ", ".join(dict.fromkeys(scores["commit"].dropna()))
    return f"{words}; docmt {__version__}" + (f", commit {commits}" if commits else "")


def write_report(folder: Path, report: Report) -> None:
    """Write `report.md`, `report.html`, `tables/` and `figures/`; each appears only when it is whole."""
    with atomic_path(folder / "tables") as tables:
        tables.mkdir()
        for table in report.tables:
            table.values.to_csv(tables / f"{table.key}.csv", index=False, encoding="utf-8")
            (tables / f"{table.key}.tex").write_text(to_latex(table), encoding="utf-8")
    with atomic_path(folder / "figures") as figures:
        figures.mkdir()
        for picture in report.pictures:
            (figures / f"{picture.key}.svg").write_text(picture.svg, encoding="utf-8")
            if picture.png is not None:
                (figures / f"{picture.key}.png").write_bytes(picture.png)
    for name in ("report.md", "report.html"):
        with atomic_writer(folder / name) as file:
            file.write(_render(name, report))


def _render(name: str, report: Report) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=name.endswith(".html"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"markdown_table": to_markdown, "markdown": escape_markdown}
    return environment.get_template(f"{name}.txt").render(report=report, style=(TEMPLATES / "report.css").read_text())
