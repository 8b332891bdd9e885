"""Report sections, their data, and the output files."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import pandas as pd

from docmt import __version__
from docmt.errors import UserError
from docmt.evaluation.metrics import ACCURACIES, ACCURACY, GENERATIVE
from docmt.files import atomic_path, atomic_writer
from docmt.paths import OVERLAP, PARSER_SCORES, ROUNDTRIP, SEGMENTER_SCORES, name_paths
from docmt.report.case_studies import read_cases
from docmt.report.claims.judging import claims_table
from docmt.report.costs import costs_table, read_costs
from docmt.report.curves import training_curves
from docmt.report.differences import Differences, read_differences
from docmt.report.figures import accuracy_bars, distance_lines, draw_plot, study_styles
from docmt.report.findings import key_findings
from docmt.report.footnotes import leak_footnote, updates_footnote
from docmt.report.html import html_environment, read_template
from docmt.report.input_files import read_histories, read_measurements, read_overlaps, read_tables
from docmt.report.markup import latex_table, to_latex, to_markdown
from docmt.report.pictures import Picture
from docmt.report.report_files import ReportFiles, name_counts
from docmt.report.score_tables import Choices, contrastive_table, further_table, main_table, paper_table, split_table
from docmt.report.settings import ReportSettings, shows
from docmt.report.study_facts import StudyFacts
from docmt.report.study_tables import (
    INSTANCE_KEYS,
    Contents,
    case_table,
    counts_table,
    overlap_table,
    parser_table,
    passes_table,
    provenance_table,
    roundtrip_table,
    segmenter_table,
    signatures_table,
    statistics_table,
    training_table,
    tree_relations_table,
    trees_table,
)
from docmt.report.summary import pool_distances, summarize, translation_scores
from docmt.report.tables import Table, to_csv, to_text

# Printed tables. The last table has the user's note.
MAIN_TABLES = ("results", "contrastive", "generative")
NO_FILES = ReportFiles()
NO_FACTS = StudyFacts()
FOLDED = ("more", "trees", "data", "provenance")  # sections that most readers do not need at first


@dataclass(frozen=True)
class Section:
    """Page section: tables, then figures."""

    key: str
    title: str
    tables: list[Table]
    pictures: list[Picture]

    @property
    def is_folded(self) -> bool:
        """True if readers open the section with a click."""
        return self.key in FOLDED


@dataclass(frozen=True)
class Report:
    """Page contents."""

    title: str
    findings: list[str]
    sections: list[Section]
    versions: list[str]
    summary_line: str
    reader: str | None = None
    has_pairs: bool = False

    @property
    def tables(self) -> list[Table]:
        """All sections' tables."""
        return list(itertools.chain.from_iterable(section.tables for section in self.sections))

    @property
    def pictures(self) -> list[Picture]:
        """All sections' figures."""
        return list(itertools.chain.from_iterable(section.pictures for section in self.sections))

    def printed(self) -> str:
        """Return the study's paper tables and main score tables as plain text. Without any, the further scores."""
        keys: set[str] = set(MAIN_TABLES)
        if not any(table.key in keys for table in self.tables):
            keys.add("further")
        texts = []
        for section in self.sections:
            for table in section.tables:
                if section.key == "tables" or table.key in keys:
                    texts.append(to_text(table))
        return "\n\n".join(texts) or "no scores of translations or contrastive test sets"


def build_report(
    scores: pd.DataFrame,
    settings: ReportSettings,
    *,
    files: ReportFiles = NO_FILES,
    study: StudyFacts = NO_FACTS,
    reader: str | None = None,
    fingerprints: Sequence[str] = (),
) -> Report:
    """Build the report from the long score table and other files. `fingerprints`: see `read_differences`."""
    summary = summarize(pool_distances(scores))
    histories = read_histories(files.histories)
    differences = read_differences(files.differences, fingerprints=fingerprints)
    # All figures share one system order, because it determines the colors.
    systems = [*study.systems, *scores["system"], *(history.system for history in histories)]
    styles = study_styles(settings, systems)
    measured = {"scores": scores, "paper_columns": study.paper_columns, "histories": histories}

    overlaps = read_overlaps(_by_name(OVERLAP, files.overlaps))

    def footnotes(systems: list[str], is_shown: Callable[[str, str], bool], baseline: str | None = None) -> list[str]:
        updates = updates_footnote(
            histories, study.origins, systems, settings, summary, baseline=baseline, extended=study.extended
        )
        return [leak_footnote(overlaps, study.generated, is_shown=is_shown), updates]

    paper_tables = []
    for name, layout in settings.tables.items():
        table = paper_table(scores, name, settings, study.paper_columns, differences)
        paper_tables.append(_add_note(table, *footnotes(layout.systems, partial(shows, layout), layout.baseline)))
    cases = [case_table(path.stem, read_cases(path), settings) for path in files.cases]
    pictures = []
    for name in settings.drawn:
        plot = draw_plot(name, settings, styles, **measured)
        if plot is not None:
            pictures.append(plot.picture)

    notes = footnotes(list(scores["system"]), lambda *_: True)
    translation, *accuracies, further = _score_tables(summary, settings, differences, notes, study.choices)
    by_kind = [split_table(summary, settings, by="kind", metric=name) for name in ACCURACIES]
    by_distance = [split_table(summary, settings, by="distance", metric=name) for name in ACCURACIES]
    trainings = [training_table(histories, settings), passes_table(histories, settings)]
    more = [further, *by_kind, *trainings]
    sections = [
        _section("tables", "Tables of the study", [*paper_tables, *cases]),
        _section("claims", "Claims", [claims_table(scores, histories, settings)]),
        _section("figures", "Figures of the study", [], pictures),
        _section("translation", "Translation", [translation]),
        _section(
            "discourse",
            "Discourse",
            [*accuracies, *by_distance],
            accuracy_bars(summary, styles) + distance_lines(summary, styles),
        ),
        _section("training", "Training", [], training_curves(histories, styles, study.origins)),
        _section("costs", "Costs", [costs_table(read_costs(files.benchmarks, study.stages))]),
        _section("more", "More scores and trainings", more),
        *_data_sections(files, overlaps, settings),
        _section("provenance", "Provenance of the numbers", [signatures_table(scores), provenance_table(scores)]),
    ]
    return Report(
        title=settings.title,
        findings=key_findings(summary, settings, differences, notes[-1], generated=study.generated),
        sections=[section for section in sections if section.tables or section.pictures],
        versions=[str(versions) for versions in scores["versions"].dropna().unique()],
        summary_line=_describe(scores),
        reader=reader,
        has_pairs=len(set(translation_scores(summary)["system"])) > 1,
    )


def _score_tables(
    summary: pd.DataFrame,
    settings: ReportSettings,
    differences: Differences,
    footnotes: Sequence[str],
    choices: Choices,
) -> list[Table | None]:
    """Return the tables for translation, contrastive, generative and further scores, with notes."""
    contrastive = contrastive_table(summary, settings, differences, metric=ACCURACY, choices=choices)
    generative = contrastive_table(summary, settings, differences, metric=GENERATIVE, choices=choices)
    tables = [main_table(summary, settings, differences), contrastive, generative, further_table(summary, settings)]
    existing = [i for i, table in enumerate(tables) if table]
    if existing:
        # The user's note is shown once, under the last main table, before the footnotes.
        last = max((i for i in existing if i < len(MAIN_TABLES)), default=existing[-1])
        tables[last] = _add_note(tables[last], before=settings.note)
        tables[existing[0]] = _add_note(tables[existing[0]], *footnotes)
    return tables


def _data_sections(files: ReportFiles, overlaps: list[tuple], settings: ReportSettings) -> list[Section]:
    """Return the sections on trees and on data."""
    statistics = read_tables(files.statistics, needed=INSTANCE_KEYS, words=INSTANCE_KEYS)
    counts = read_tables(files.tree_statistics, needed=["name"], words=["name"])
    labels = ("name", "relation")
    needed = (*labels, "arcs", "percent", "between_sentences_percent")
    relations = read_tables(files.tree_relations, needed=needed, words=labels)
    trees = [
        trees_table(counts),
        tree_relations_table(relations),
        _measured_table(segmenter_table, _by_name(SEGMENTER_SCORES, files.segmenters), key="scores"),
        _measured_table(parser_table, _by_name(PARSER_SCORES, files.parsers), key="parseval"),
    ]
    data = [
        statistics_table(statistics, settings),
        overlap_table(overlaps),
        _measured_table(counts_table, name_counts(files.counts)),
        _measured_table(roundtrip_table, _by_name(ROUNDTRIP, files.roundtrips), key="languages"),
    ]
    return [_section("trees", "Discourse: EDUs and trees", trees), _section("data", "Data", data)]


def _by_name(template: str, paths: Sequence[Path]) -> dict[str, Path]:
    return {name: path for (name,), path in name_paths(template, paths).items()}


def _measured_table(
    make: Callable[[Contents], Table | None], paths: Mapping[str, Path], *, key: str | None = None
) -> Table | None:
    """Build one table from several JSON files. Files are also formatted separately, so that an error names the file."""
    contents = read_measurements(paths, key=key)
    for name, content in contents:
        try:
            table = make([(name, content)])
            if table is not None:
                to_text(table)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise UserError(f"{paths[name]}: not a file of the expected kind ({error}): compute it again") from None
    return make(contents)


def _section(key: str, title: str, tables: Sequence[Table | None], pictures: Sequence[Picture] = ()) -> Section:
    return Section(key, title, [table for table in tables if table is not None], list(pictures))


def _add_note(table: Table | None, *sentences: str, before: str = "") -> Table | None:
    """Return the table with sentences after the note, and `before` in front of it."""
    return table and replace(table, note=" ".join(filter(None, (before, table.note, *sentences))))


def _describe(scores: pd.DataFrame) -> str:
    numbers = {
        "dataset": scores["dataset"].nunique(),
        "system": scores["system"].nunique(),
        "run": len(scores[["dataset", "system", "seed"]].drop_duplicates()),
        "score": len(scores),
    }
    words = []
    for name, number in numbers.items():
        if number != 1:
            name += "s"
        words.append(f"{number:,} {name}")
    text = f"{', '.join(words)}; docmt {__version__}"
    commits = ", ".join(scores["commit"].dropna().unique())
    if commits:
        text += f", commit {commits}"
    return text


def write_report(folder: Path, report: Report) -> None:
    """Write `report.html`, `tables/` and `figures/`, all atomically."""
    # The page comes last, so that linked files are complete.
    with atomic_path(folder / "tables") as tables:
        tables.mkdir()
        for table in report.tables:
            (tables / f"{table.key}.csv").write_text(to_csv(table), encoding="utf-8")
            (tables / f"{table.key}.tex").write_text(to_latex(table), encoding="utf-8")
    with atomic_path(folder / "figures") as figures:
        figures.mkdir()
        for picture in report.pictures:
            (figures / f"{picture.key}.svg").write_text(picture.svg, encoding="utf-8")
            (figures / f"{picture.key}.png").write_bytes(picture.png)
            (figures / f"{picture.key}.pdf").write_bytes(picture.pdf)
    page = html_environment()
    page.filters |= {"csv": to_csv, "latex": latex_table, "markdown": to_markdown, "plain": asdict}
    html = page.get_template("report.html.txt").render(
        report=report,
        style=read_template("report.css"),
        # In dependency order.
        script=read_template("elements.js", "tables.js"),
    )
    with atomic_writer(folder / "report.html") as file:
        file.write(html)
