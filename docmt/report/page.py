"""The report: Markdown, one HTML page, and its tables and figures as files."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import jinja2
import pandas as pd

from docmt import __version__
from docmt.evaluation.metrics import ACCURACIES
from docmt.files import atomic_path, atomic_writer
from docmt.report.cases import case_table, read_cases
from docmt.report.claims.table import claims_table
from docmt.report.costs import JobCost, costs_table, read_costs
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
from docmt.report.differences import Differences, read_differences
from docmt.report.discourse import parser_table, relation_table, segmenter_table, tree_pictures, tree_table
from docmt.report.drawing import Picture
from docmt.report.figures import accuracy_bars, distance_lines, training_curves
from docmt.report.layouts import Facts, laid_out_table
from docmt.report.manifest import Manifest
from docmt.report.plots import draw_plot, study_styles
from docmt.report.remarks import guessing_remark, overlap_remark, updates_remark
from docmt.report.results import contrastive_table, further_table, main_table, split_tables
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
from docmt.report.styles import Styles
from docmt.report.summary import summarize
from docmt.report.tables import LATEX, Table, escape_markdown, to_csv, to_latex, to_markdown, to_text

TEMPLATES = Path(__file__).parent / "templates"
MAIN_TABLES = ("results", "contrastive", "generative")
SCRIPTS = ("elements", "tables")
"""The parts of the script, in the order in which they need each other."""
"""The tables that are printed; the last of them has the note of the settings."""


@dataclass(frozen=True)
class Section:
    """A section of the page: tables, then pictures."""

    key: str
    title: str
    tables: list[Table] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """All that the page shows."""

    title: str
    sections: list[Section]
    versions: list[str]
    summary_line: str
    reader: str | None = None

    @property
    def tables(self) -> list[Table]:
        """The tables of all sections."""
        return [table for section in self.sections for table in section.tables]

    @property
    def pictures(self) -> list[Picture]:
        """The pictures of all sections."""
        return [picture for section in self.sections for picture in section.pictures]

    def printed(self) -> str:
        """The tables of the study, the main table and the contrastive table as plain text."""
        shown = [
            to_text(table)
            for section in self.sections
            for table in section.tables
            if section.key == "tables" or table.key in MAIN_TABLES
        ]
        return "\n\n".join(shown) or "no scores of translations or contrastive test sets"


def build_report(
    scores: pd.DataFrame,
    settings: ReportSettings,
    *,
    facts: Facts | None = None,
    manifest: Manifest | None = None,
) -> Report:
    """Make tables and pictures of the long table, and of the files that the manifest lists.

    Raises UserError when one of these is missing or has another form.
    """
    manifest = manifest or Manifest(runs={})
    summary = summarize(scores)
    histories = read_histories(manifest)
    named = [*manifest.systems, *scores["system"], *(history.system for history in histories)]
    styles = study_styles(settings, named)
    differences = read_differences(manifest.differences)
    laid_out = [
        _with_remarks(
            laid_out_table(scores, name, settings, facts or {}, differences),
            updates_remark(histories, manifest.origins, layout.systems, settings),
        )
        for name, layout in settings.tables.items()
    ]
    laid_out += [case_table(name, read_cases(path), settings) for name, path in manifest.cases.items()]
    drawn = {"scores": scores, "facts": facts or {}, "histories": histories}
    plots = [draw_plot(name, settings, styles, **drawn) for name in settings.drawn]
    remark = updates_remark(histories, manifest.origins, list(scores["system"]), settings)
    translation, *accuracies = _main_tables(summary, settings, differences, remark)
    sections = [
        _section("tables", "Tables of the study", laid_out),
        _section("claims", "Claims", [claims_table(scores, histories, settings)]),
        _section("figures", "Figures of the study", [], [plot.picture for plot in plots if plot]),
        _section("translation", "Translation", [translation, further_table(summary, settings)]),
        _section(
            "discourse",
            "Discourse",
            [*accuracies, *split_tables(summary, settings)],
            accuracy_bars(summary, styles) + distance_lines(summary, styles),
        ),
        _trees_section(manifest),
        _training_section(histories, settings, styles),
        _data_section(manifest, settings),
        _section("costs", "Costs", [costs_table(_read_costs(manifest, scores))]),
        _section("provenance", "How the numbers were made", [signature_table(scores), provenance_table(scores)]),
    ]
    return Report(
        title=settings.title,
        sections=[section for section in sections if section.tables or section.pictures],
        versions=package_versions(scores),
        summary_line=_describe(scores),
        reader=manifest.reader,
    )


def _main_tables(
    summary: pd.DataFrame, settings: ReportSettings, differences: Differences, remark: str
) -> tuple[Table | None, Table | None, Table | None]:
    """Translation scores, contrastive and generative accuracy, with the note of the settings and remarks."""
    translation, contrastive, generative = _add_note(
        main_table(summary, settings, differences),
        *(contrastive_table(summary, settings, differences, metric=metric) for metric in ACCURACIES),
        note=settings.note,
    )
    guessing = guessing_remark(summary, settings)
    return (
        _with_remarks(translation, remark),
        _with_remarks(contrastive, guessing, "" if translation else remark),
        generative,
    )


def _add_note(*tables: Table | None, note: str) -> list[Table | None]:
    """The tables, of which the last one that there is has the note."""
    last = max((place for place, table in enumerate(tables) if table is not None), default=None)
    return [replace(table, note=note) if table and place == last else table for place, table in enumerate(tables)]


def _with_remarks(table: Table | None, *remarks: str) -> Table | None:
    """The table, with what its numbers do not mean after its note."""
    return table and replace(table, note=" ".join(filter(None, (table.note, *remarks))))


def _section(key: str, title: str, tables: Sequence[Table | None], pictures: Sequence[Picture] = ()) -> Section:
    return Section(key, title, [table for table in tables if table is not None], list(pictures))


def _training_section(histories: list[History], settings: ReportSettings, styles: Styles) -> Section:
    tables = [training_table(histories, settings), passes_table(histories, settings)]
    return _section("training", "Training", tables, training_curves(histories, styles))


def _trees_section(manifest: Manifest) -> Section:
    relations = ("relation", "arcs", "percent", "between_sentences_percent")
    tables = [
        tree_table(read_tree_tables(list(manifest.tree_statistics.values()), needed=())),
        relation_table(read_tree_tables(list(manifest.tree_relations.values()), needed=relations)),
        segmenter_table(read_measurements(manifest.segmenters, key="scores")),
        parser_table(read_measurements(manifest.parsers, key="parseval")),
    ]
    return _section("trees", "Discourse: EDUs and trees", tables, tree_pictures(manifest.tree_pictures))


def _data_section(manifest: Manifest, settings: ReportSettings) -> Section:
    tables = [
        statistics_table(read_statistics(list(manifest.statistics.values())), settings),
        _with_remarks(overlap_table(read_overlaps(manifest.overlaps)), overlap_remark(manifest.generated)),
        counts_table(read_counts(manifest.counts)),
        roundtrip_table(read_measurements(manifest.roundtrips, key="languages")),
    ]
    return _section("data", "Data", tables)


def _read_costs(manifest: Manifest, scores: pd.DataFrame) -> list[JobCost]:
    """Costs of what led to the report; a page cannot contain its own cost."""
    if manifest.benchmarks is None:
        return []
    # Systems that translate with another system's model have scores, but are not among the trained runs.
    runs = {*manifest.trained(), *zip(scores["dataset"], scores["system"], scores["seed"], strict=True)}
    folders = {
        f"{dataset}_{system}_seed{seed}": manifest.folder(dataset, system, seed) for dataset, system, seed in runs
    }
    pages = ("render", "render_reader")  # the second may be made before or after this one
    return read_costs(manifest.benchmarks, run_folders=folders, without=pages, stages=manifest.stages)


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
    """Write `report.md`, `report.html`, `tables/` and `figures/`; each appears only when complete."""
    with atomic_path(folder / "tables") as tables:
        tables.mkdir()
        for table in report.tables:
            (tables / f"{table.key}.csv").write_text(to_csv(table), encoding="utf-8")
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
    environment.filters |= {"markdown_table": to_markdown, "markdown": escape_markdown, "csv": to_csv}
    parts = {
        "style": (TEMPLATES / "report.css").read_text(encoding="utf-8"),
        "script": "".join((TEMPLATES / f"{part}.js").read_text(encoding="utf-8") for part in SCRIPTS),
        "latex": LATEX,
    }
    return environment.get_template(f"{name}.txt").render(report=report, **parts)
