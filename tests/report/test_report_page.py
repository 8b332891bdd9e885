"""`docmt report`, from score files to the page."""

import contextlib
import io
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from elements import Elements
from score_rows import accuracy, render_report, score, write_scores

from docmt.cli.main import main

HOSTILE = "<script>alert(1)</script> & $x_1$"
HISTORY = """\
step,epoch,seconds,tokens_per_second,train_loss,dev_loss,entropy_cross,entropy_encoder,entropy_decoder
100,1,5,20,8.5,,,,
200,2,9,21,7.5,7.0,6.1,5.2,nan
300,3,14,20,6.5,6.0,5.9,5.3,
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Score files of two systems with two seeds, one score missing, and a manifest with their histories."""
    files, tmp_path = [], tmp_path_factory.mktemp("study")
    for system in ("base", HOSTILE):
        for seed in (1, 2):
            scores = [score(system, 20 + seed, seed=seed), score(system, None, seed=seed, metric="chrF")]
            scores += [accuracy(system, 60 + seed, seed=seed, distance=distance, n=40) for distance in (None, 1, 2)]
            files.append(write_scores(tmp_path / f"{len(files)}.json", scores, commit="c0ffee", fingerprint="f00"))
    for name in ("base", "other"):
        for seed in (1, 2):
            folder = tmp_path / f"runs/d-{name}-{seed}"
            folder.mkdir(parents=True)
            (folder / "history.csv").write_text(HISTORY)
    runs = {"d": {"base": [1, 2], "other": [1, 2]}}
    return files, {"runs": runs, "run_folder": str(tmp_path / "runs/{dataset}-{system}-{seed}")}


def render(folder, study, **settings):
    files, manifest = study
    return render_report(folder, *files, manifest=manifest, **settings)


@pytest.fixture(scope="module")
def page(tmp_path_factory, study):
    """The folder, the page and the printed tables of the study, rendered once: most of the time goes into pictures."""
    folder, printed = tmp_path_factory.mktemp("page"), io.StringIO()
    with contextlib.redirect_stdout(printed):
        html = render(folder, study)
    return folder / "out", html, printed.getvalue()


def test_page_is_whole_and_self_contained(page):
    _, html, printed = page
    elements = Elements(html)
    assert not elements.open
    assert elements.tags.count("script") == 1, "only the page's own, which tests/report/test_report_in_browser.py runs"
    assert "default-src &#39;none&#39;" in html or "default-src 'none'" in html
    assert "<script>alert" not in html
    assert "img" not in elements.tags
    assert all(link.startswith("#") for link in elements.links)
    assert len(elements.ids) == len(set(elements.ids))
    assert {link[1:] for link in elements.links} <= set(elements.ids)
    assert "&lt;script&gt;" in html
    assert "currentColor" in html
    assert "prefers-color-scheme: dark" in html
    assert not re.search(r"https?://(?!www\.w3\.org/)", html)
    for shown in ("Translation scores", "Contrastive accuracy", "21.50 ± 0.71"):
        assert shown in printed


def test_the_page_links_to_the_reader_and_has_the_note_under_the_last_main_table(tmp_path, study, page, capsys):
    html = render(tmp_path, (study[0], {"runs": {}, "reader": 'a"b.html'}), note="See <b> and *this*.")
    assert '<a href="a&#34;b.html">Read the translations</a>' in html
    assert '<a href="a&#34;b.html#view=changes">' in html
    assert html.count('<a href="a&#34;b.html#view=items&amp;a=base&amp;set=d%2Fpronoun&amp;phenomenon=pronoun') == 3
    note = '<p class="note">See &lt;b&gt; and *this*. '
    assert html.count(note) == 1
    tables = [html.index(f'id="discourse-contrastive{split}"') for split in ("", "_by_distance")]
    assert tables[0] < html.index(note) < tables[1]
    assert "\n\nSee <b> and *this*. Items: pronoun 40." in capsys.readouterr().out
    without = page[1]
    assert "view=items" not in without


def test_tables_and_figures_are_files(page):
    out = page[0]
    stems = [{path.stem for path in (out / "tables").glob(f"*.{suffix}")} for suffix in ("csv", "tex")]
    assert stems[0] == stems[1]
    assert (out / "tables" / "results.csv").read_text().startswith("dataset,test,system,s-BLEU,s-BLEU sd")
    figures = {path.name for path in (out / "figures").iterdir()}
    assert {"learning_curves_d.svg", "learning_curves_d.png", "entropies_d.svg", "contrastive_d.svg"} <= figures
    for path in (out / "figures").glob("*.svg"):
        ElementTree.parse(path)
    assert sorted(path.name for path in out.iterdir()) == [".checksums", "figures", "report.html", "tables"]


def test_equal_input_gives_equal_bytes(tmp_path, study, page):
    out, html, _ = page
    assert render(tmp_path, study) == html
    picture = "figures/contrastive_d.png"
    assert (tmp_path / "out" / picture).read_bytes() == (out / picture).read_bytes()


def test_scores_and_tables_of_data_are_enough(tmp_path, study):
    overlap, statistics, counts = (tmp_path / name for name in ("overlap.json", "statistics.csv", "counts.json"))
    overlap.write_text(json.dumps({"tests": {"test_t": {"sentences": 4, "seen_pairs": 1, "seen_pairs_percent": 25.0}}}))
    statistics.write_text("dataset,cutting,split,sentences\nd,doc,train,123456\n")
    counts.write_text(json.dumps({"sentences": 4, "dropped": {"empty": 1}}))
    manifest = {"runs": {}, "overlaps": {"d": str(overlap)}, "statistics": {"d": str(statistics)}}
    html = render(tmp_path, (study[0], manifest | {"counts": {"d/test": str(counts)}}))
    for shown in ("Translation scores", "1 (25.0 %)", "123,456", "d/test"):
        assert shown in html
    assert "Learning curves" not in html
    assert "d,test_t,4" in (tmp_path / "out" / "tables" / "overlap.csv").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(({"run_folder": bad}, "run_folder: must be a path with {") for bad in ("{dataset}/{sytem}", "{dataset.x}")),
        ({"runs": {"d": {"s": ["1"]}}}, "manifest.runs.d.s.0: expected a number"),
        ({"overlap": {}}, "manifest.overlap: unknown key; did you mean 'overlaps'?"),
        ({"statistics": {"d": 5}}, "manifest.statistics.d: "),
        ({"run_folder": "bad{seed}"}, "line 3, column 'train_loss' is not a number: 'oops'"),
        ({"run_folder": "none"}, "none/history.csv: no such file"),
        ({"run_folder": "ok{seed}", "parsers": {"p": "parser.json"}}, "parser.json: not a file of the expected kind ("),
        ({"run_folder": "ok{seed}", "roundtrips": {"d": "text.json"}}, "text.json: not a file of the expected kind ("),
        ({"run_folder": "ok{seed}", "overlaps": {"d": "overlap.json"}}, "overlap.json: key 'tests' must map tests to"),
        ({"run_folder": "ok{seed}", "tree_statistics": {"t": "t.csv"}}, "t.csv: line 2, column 'edus' is not a number"),
    ],
)
def test_a_bad_manifest_or_history_gives_one_line_and_no_report(tmp_path, study, capsys, monkeypatch, changes, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad1").mkdir()
    (tmp_path / "bad1/history.csv").write_text("step,train_loss\n1,2.5\n2,oops\n")
    (tmp_path / "ok1").mkdir()
    (tmp_path / "ok1/history.csv").write_text("step,train_loss\n1,2.5\n")
    (tmp_path / "parser.json").write_text('{"parseval": {}, "uas": [1]}')
    (tmp_path / "text.json").write_text('{"languages": {"en": {"causes": "none"}}}')
    (tmp_path / "overlap.json").write_text('{"tests": {"test_t": {"seen_pairs": 1, "seen_pairs_percent": "x"}}}')
    (tmp_path / "t.csv").write_text("name,edus\nd/parsed/train,many\n")
    main(["report", "collect", "--scores", *map(str, study[0]), "--out", "scores.csv"])
    (tmp_path / "manifest.json").write_text(json.dumps({"runs": {"d": {"s": [1]}}} | changes))
    arguments = ["--scores", "scores.csv", "--out", "out", "--manifest", "@manifest.json"]
    assert main(["report", "render", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error
    assert not (tmp_path / "out").exists()
