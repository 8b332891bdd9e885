"""Self-contained reader page: contents, sample size and embedding."""

import base64
import gzip
import json
import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docmt import __version__
from docmt.commands import files_by_name
from docmt.corpora.documents import index_path, split_prefixes
from docmt.errors import UserError
from docmt.files import atomic_writer
from docmt.paths import INDEX, OUTPUT, name_paths
from docmt.report.html import html_environment, read_template
from docmt.report.reader.shown_documents import read_documents
from docmt.report.reader.shown_items import read_generative_items, read_items
from docmt.report.report_files import ReaderFiles
from docmt.report.settings import ReportSettings
from docmt.report.study_facts import StudyFacts
from docmt.report.styles import Styles, in_both_schemes
from docmt.settings import look_up

# Script parts, in dependency order
SCRIPTS = ("text", "state", "tree", "documents", "changes", "generative", "items", "main")
ATTEMPTS = 4
MARGIN = 0.98  # safety factor, since parts of a sample compress differently

log = logging.getLogger(__name__)


def collect(files: ReaderFiles, study: StudyFacts, settings: ReportSettings) -> dict[str, Any]:
    """Collect the page contents, before sampling.

    Returns:
        `title`, `runs` (`key`, `label`, `color`, `sign`), `baseline` (a key), `tests` and `suites`. The last two are
        lists of objects with the keys `name` (`DATASET/TEST`), `languages`, `total` (number of documents or items) and
        `documents` or `items`. Runs are identified by their number.
    """
    named = name_paths(OUTPUT, files.outputs)
    runs = list(dict.fromkeys((system, seed) for _, system, seed, _ in named))
    numbers = {run: number for number, run in enumerate(runs)}
    outputs: dict[str, dict[int, Path]] = {}  # by DATASET/KIND_NAME, and by run number
    for (dataset, system, seed, name), path in named.items():
        outputs.setdefault(f"{dataset}/{Path(name).stem}", {})[numbers[system, seed]] = path
    trees: dict[str, dict[str, list[Path]]] = {}
    for name, paths in files_by_name("--trees", files.trees, form="DATASET/TEST/TREES=FILE").items():
        test, _, tree_name = name.rpartition("/")
        trees.setdefault(test, {})[tree_name] = paths

    def languages_of(dataset: str) -> list[str]:
        return look_up(study.languages, dataset, where="study.languages", what="dataset")

    tests = []
    suites = []
    prefixes = split_prefixes(files.texts)
    for (dataset, _, split), prefix in zip(name_paths(INDEX, map(index_path, prefixes)), prefixes, strict=True):
        test = f"{dataset}/{split.removeprefix('test_')}"
        languages = languages_of(dataset)
        translations = outputs.pop(f"{dataset}/{split}", {})
        documents = read_documents(prefix, languages, translations, trees.pop(test, {}))
        tests.append(_part(test, languages, documents=documents))
    for option, kind, arguments in (
        ("--suites", "suite", files.suites),
        ("--generative", "generated", files.generative),
    ):
        for name, paths in files_by_name(option, arguments, form="DATASET/SUITE=FILE").items():
            if len(paths) > 1:
                raise UserError(f"{option} {name}: {len(paths)} files: pass one")
            dataset, suite = name.split("/")
            languages = languages_of(dataset)
            of_runs = outputs.pop(f"{dataset}/{kind}_{suite}", {})
            if kind == "suite":
                items = read_items(paths[0], of_runs, ties=study.ties)
            else:
                items = read_generative_items(paths[0], of_runs, lang=languages[1])
            suites.append(_part(name, languages, items=items))
    for of_runs in outputs.values():
        path = next(iter(of_runs.values()))
        raise UserError(f"{path}: also pass its text or suite in --texts, --suites or --generative")
    for test in trees:
        raise UserError(f"--trees: {test}: also pass the text of this test in --texts")
    described, baseline = _describe_runs(runs, study, settings)
    data = {"title": settings.title, "version": __version__, "runs": described, "baseline": baseline}
    return data | {"tests": tests, "suites": suites}


def _describe_runs(
    runs: Sequence[tuple[str, str]], study: StudyFacts, settings: ReportSettings
) -> tuple[list[dict[str, str]], str]:
    """Return key, label, color and sign by run, and the key of the baseline's first run (empty without a baseline)."""
    n_seeds = Counter(system for system, _ in runs)
    styles = Styles([*study.systems, *n_seeds], settings)
    described = []
    baseline = ""
    for system, seed in runs:
        key = system
        label = settings.label(system)
        if n_seeds[system] > 1:
            key += f".{seed}"
            label += f", seed {seed}"
        if system == settings.baseline and not baseline:
            baseline = key
        color = in_both_schemes(styles.color(system))
        described.append({"key": key, "label": label, "color": color, "sign": styles.sign(system)})
    return described, baseline


def _part(name: str, languages: Sequence[str], **content: list[dict[str, Any]]) -> dict[str, Any]:
    (members,) = content.values()
    return {"name": name, "languages": languages, "total": len(members), **content}


def sample(data: dict[str, Any], share: float) -> dict[str, Any]:
    """Return the data with an evenly spaced share of documents per test set and items per suite."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for kind, key in (("tests", "documents"), ("suites", "items")):
        parts[kind] = []
        for part in data[kind]:
            members = part[key]
            n = min(len(members), max(1, round(share * len(members))))
            parts[kind].append(part | {key: [members[i * len(members) // n] for i in range(n)]})
    return data | parts


def pack(data: dict[str, Any]) -> str:
    """Return the data as compressed JSON in base 64, so that no text can end the HTML element that contains it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8", "surrogatepass"), compresslevel=6, mtime=0)).decode()


def fit(data: dict[str, Any], max_bytes: float) -> str:
    """Return the packed data, or a sample of at most `max_bytes` (but one document) found in a few attempts."""
    packed = pack(data)
    if len(packed) <= max_bytes:
        return packed
    low = 0.0
    high = 1.0
    n_high = len(packed)
    best = pack(sample(data, low))
    # Regula falsi, since the sample size grows almost linearly with the share.
    n_attempts = 0
    if len(best) <= max_bytes:
        n_attempts = ATTEMPTS
    for _ in range(n_attempts):
        share = low + (high - low) * MARGIN * (max_bytes - len(best)) / (n_high - len(best))
        packed = pack(sample(data, share))
        if len(packed) <= max_bytes:
            low = share
            best = packed
        else:
            high = share
            n_high = len(packed)
    if len(best) > max_bytes:
        log.warning("reader: larger than report.reader.max_megabytes, even with one document per test set")
    log.info(
        "reader: %d of %d documents and items (report.reader.max_megabytes)", _count(sample(data, low)), _count(data)
    )
    return best


def _count(data: dict[str, Any]) -> int:
    return sum(len(part["documents"]) for part in data["tests"]) + sum(len(part["items"]) for part in data["suites"])


def write_reader(path: Path, files: ReaderFiles, study: StudyFacts, settings: ReportSettings) -> None:
    """Write the page. It is self-contained and does not load anything."""
    parts = {
        "title": settings.title,
        "style": read_template("report.css", "reader/reader.css"),
        "script": read_template("elements.js", *(f"reader/{name}.js" for name in SCRIPTS)),
    }
    template = html_environment().get_template("reader/reader.html.txt")
    around = len(template.render(**parts, data="").encode())
    html = template.render(
        **parts, data=fit(collect(files, study, settings), settings.reader.max_megabytes * 1e6 - around)
    )
    with atomic_writer(path) as file:
        file.write(html)
