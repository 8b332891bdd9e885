"""The report in Chromium: sorting, filtering, hiding and saving of tables, also on a phone, without an error."""

import csv
import io
import re
import time

import pytest
from score_rows import accuracy, render_report, score, write_scores

READY = "return document.querySelectorAll('.tools').length > 0"
LONG = "long name of a system " * 3
HOSTILE = "<b>B</b> & $x_1$ | 1"
SCORES = {
    "plain": (9.5, 61.0),
    HOSTILE: (21.25, 62.0),
    "third": (None, 59.5),
    LONG: (100.0, 50),
}
ROWS = "table[data-key=results] tbody tr"
SYSTEMS = f"{ROWS} td:nth-child(2)"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Folder of a report with four systems and two test sets."""
    folder = tmp_path_factory.mktemp("report")
    files = []
    for system, values in SCORES.items():
        scores = [
            score(system, value, test=test, metric=metric)
            for test in ("t", "u")
            for metric, value in zip(("s-BLEU", "chrF"), values, strict=True)
        ]
        files.append(write_scores(folder / f"{len(files)}.json", scores, commit="c0ffee", fingerprint="f00"))
    render_report(folder, *files, note="See 5 % of <this>.")
    return folder / "out"


@pytest.fixture
def browser(window, report):
    """The report in a window. A test fails if it leaves an error in the console."""
    window.resize(1300, 900)
    window.open(report / "report.html", ready=READY)
    yield window
    assert window.console() == []
    assert window.run("return performance.getEntriesByType('resource').length") == 0, "the page loads nothing"


def sort(browser, column):
    browser.click(f"table[data-key=results] th:nth-child({column}) button")


def test_clicks_sort_and_restore(browser):
    first = [browser.texts(f"{ROWS}:nth-child({n}) td") for n in range(1, 9)]
    assert [row[0] for row in first] == [*("t", "", "", ""), *("u", "", "", "")]
    sort(browser, 3)
    assert browser.texts(f"{ROWS} td:nth-child(3)") == ["100.00"] * 2 + ["21.25"] * 2 + ["9.50"] * 2 + ["–"] * 2
    assert browser.texts(f"{ROWS} td:nth-child(1)") == ["t", "u"] * 4, "a row out of its place says where it belongs"
    sort(browser, 3)
    assert browser.texts(f"{ROWS} td:nth-child(3)") == ["9.50"] * 2 + ["21.25"] * 2 + ["100.00"] * 2 + ["–"] * 2
    assert browser.run("return document.querySelector('[aria-sort=ascending]').textContent") == "s-BLEU"
    sort(browser, 3)
    assert [browser.texts(f"{ROWS}:nth-child({n}) td") for n in range(1, 9)] == first


def test_markup_in_names_stays_text(browser):
    sort(browser, 2)
    assert browser.texts(SYSTEMS)[:2] == [HOSTILE] * 2
    assert browser.texts(f"{SYSTEMS} b") == []


def test_a_filter_leaves_rows_with_all_words(browser):
    browser.type("#translation-results input[type=search]", "PLAIN u")
    assert [browser.texts(f"{ROWS}:nth-child(1) td")[:2]] == [["u", "plain"]]
    assert len(browser.texts(SYSTEMS)) == 1
    assert browser.texts("#translation-results .count") == ["1 of 8 rows"]


def saved(browser, folder, form, name):
    """Text of a file that a button of the main table saves."""
    browser.emulate("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    path = folder / name
    buttons = "[...document.querySelectorAll('#translation-results .tools button')]"
    browser.run(f"{buttons}.find((button) => button.textContent === arguments[0]).click()", form)
    end = time.monotonic() + 20
    # Chromium holds the name with an empty file, which the complete one replaces.
    while not path.exists() or not path.stat().st_size:
        assert time.monotonic() < end, list(folder.iterdir())
        time.sleep(0.05)
    return path.read_text(encoding="utf-8")


def test_files_are_those_of_the_report(browser, report, tmp_path):
    assert saved(browser, tmp_path, "CSV", "results.csv") == (report / "tables/results.csv").read_text()
    assert saved(browser, tmp_path, "LaTeX", "results.tex") == (report / "tables/results.tex").read_text()
    markdown = saved(browser, tmp_path, "Markdown", "results.md")
    plain = [[re.sub(r"\*\*|\\(.)", r"\1", cell) for cell in row] for row in cells(markdown)]
    rows = [browser.texts(f"{ROWS}:nth-child({n}) td") for n in range(1, 9)]
    assert plain[1:] == [[cell.strip() for cell in row] for row in rows]
    assert "**100.00**" in markdown


def cells(table):
    """Cells of a Markdown table, without the alignment line."""
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.strip().splitlines()]
    return [[cell.strip() for cell in line] for line in lines if not set("".join(line)) <= set(":- ")]


def test_hidden_parts_leave_the_files(browser, report, tmp_path):
    browser.click("#translation-results .columns summary")
    browser.click("#translation-results .columns label:nth-child(3) input")
    assert browser.texts("table[data-key=results] th:not([hidden])") == ["Test", "System", "chrF"]
    browser.type("#translation-results input[type=search]", "third")
    assert cells(saved(browser, tmp_path, "Markdown", "results.md")) == [
        ["Test", "System", "chrF"],
        ["t", "third", "59.50"],
        ["u", "third", "59.50"],
    ]
    rows = list(csv.DictReader(io.StringIO(saved(browser, tmp_path, "CSV", "results.csv"))))
    assert len(rows) == 8, "the values in full precision are always all"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_on_a_phone(scheme, browser, report):
    browser.emulate("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.resize(320, 700)
    browser.open(report / "report.html", ready=READY)
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    heads = "return [...document.querySelectorAll('table[data-key=results] th')].filter((head) => head.offsetWidth)"
    assert browser.run(f"{heads}.map((head) => head.textContent)") == ["Test", "System", "s-BLEU"]
    browser.run("document.querySelector('#translation-results .whole').click()")
    assert len(browser.run(heads)) == 4, "the rest is a touch away"
    left, start, ground, room = browser.run(
        "const box = document.querySelector('#translation-results .scroll');"
        "box.querySelectorAll('td.number').forEach((cell) => (cell.style.paddingLeft = '6rem')); box.scrollLeft = 1000;"
        "const cell = box.querySelector('tbody td:nth-child(2)');"
        "return [cell.getBoundingClientRect().left, box.getBoundingClientRect().left,"
        " getComputedStyle(cell).backgroundColor, cell.offsetWidth / box.offsetWidth]"
    )
    assert left == pytest.approx(start, abs=1)
    assert ground not in ("rgba(0, 0, 0, 0)", "transparent"), "what scrolls under it is hidden"
    assert room < 0.6


def test_a_link_opens_a_folded_section(browser, report):
    folded = "return document.querySelector('#provenance > details').open"
    assert not browser.run(folded)
    assert not browser.run("return document.querySelector('#provenance-signatures').checkVisibility()")
    browser.click("nav a[href='#provenance-signatures']")
    browser.wait(folded)
    browser.open(report / "report.html", "#provenance-signatures", ready=READY)
    assert browser.run(folded)


@pytest.mark.slow
def test_distances_fit_beside_the_contents(tmp_path, browser):
    rows = [
        accuracy("Transformer on documents", 74 + 9 * seed, seed=seed, distance=distance, **keys)
        for keys in [{"dataset": "dataset", "test": "s", "phenomenon": "lexical_choice", "n": 90}]
        for seed in (1, 2)
        for distance in (1, 2, 3, 5, 8, 20)
    ]
    columns = ["documents", "sentences", "edus", "edus_per_sentence", "words_per_edu", "one_edu_sentences_percent"]
    columns += ["dependency_depth", "constituent_depth", "whole_sentences_percent", "chain_percent"]
    columns += ["whole_several_edu_sentences_percent", "several_head_sentences_percent"]
    columns += ["arcs_between_sentences_percent"]
    values = ["dataset/parsed/test_controlled", *["49356"] * 3, *["100.0"] * (len(columns) - 3)]
    (tmp_path / "trees.csv").write_text(f"name,{','.join(columns)}\n{','.join(values)}\n")
    options = {"reader": ["r.html"], "tree-statistics": [tmp_path / "trees.csv"]}
    render_report(tmp_path, write_scores(tmp_path / "s.json", rows), options=options)
    browser.resize(1280, 900)
    browser.open(tmp_path / "out/report.html", "#trees-trees", ready=READY)
    browser.run("document.querySelectorAll('details:not(.columns)').forEach((details) => (details.open = true))")
    wide = "return [...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth).length"
    assert browser.run(wide) == 0
    assert browser.texts("table[data-key=contrastive_by_distance] th")[1:] == ["1", "2", "3", "4–6", "7–10", "> 10"]
    sort = "document.querySelector('table[data-key=contrastive_by_distance] th:nth-child(2) button').click()"
    browser.run(f"{sort}; {sort}")
    linked = browser.run("return document.querySelector('table[data-key=contrastive_by_distance] td a').hash")
    assert linked.startswith("#view=items&a=Transformer+on+documents&set=dataset%2Fs"), (
        "sorted numbers keep their links"
    )
