"""`docmt report`, from score files to the page."""

import contextlib
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import fields
from pathlib import Path

import pytest
from elements import Elements
from score_rows import accuracy, render_report, score, write_scores

from docmt.cli.main import main
from docmt.report.report_files import ReportFiles, name_counts

HOSTILE = "<script>alert(1)</script> & $x_1$"
HISTORY = """\
step,epoch,seconds,tokens_per_second,train_loss,dev_loss,entropy_cross,entropy_encoder,entropy_decoder
100,1,5,20,8.5,,,,
200,2,9,21,7.5,7.0,6.1,5.2,nan
300,3,14,20,6.5,6.0,5.9,5.3,
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Score files for two systems with two seeds and one missing score, and histories of two trainings."""
    files, tmp_path = [], tmp_path_factory.mktemp("study")
    for system in ("base", HOSTILE):
        for seed in (1, 2):
            scores = [score(system, 20 + seed, seed=seed), score(system, None, seed=seed, metric="chrF")]
            scores += [accuracy(system, 60 + seed, seed=seed, distance=distance, n=40) for distance in (None, 1, 2)]
            files.append(write_scores(tmp_path / f"{len(files)}.json", scores, commit="c0ffee", fingerprint="f00"))
    histories = [write(tmp_path / history_of(name, seed), HISTORY) for name in ("base", "other") for seed in (1, 2)]
    return files, {"histories": histories}


def history_of(system, seed=1):
    return f"d/runs/{system}/seed{seed}/history.csv"


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def render(folder, study, **settings):
    files, options = study
    return render_report(folder, *files, options=options, **settings)


@pytest.fixture(scope="module")
def page(tmp_path_factory, study):
    """Folder, page and printed tables. They are rendered once, because pictures take most of the time."""
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
    for text in ("Translation scores", "Contrastive accuracy", "21.50 ± 0.71"):
        assert text in printed


@pytest.mark.slow
def test_page_links_to_the_reader(tmp_path, study, page, capsys):
    html = render(tmp_path, (study[0], {"reader": ['a"b.html']}), note="See <b> and *this*.")
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


@pytest.mark.slow
def test_equal_input_gives_equal_bytes(tmp_path, study, page):
    out, html, _ = page
    assert render(tmp_path, study) == html
    picture = "figures/contrastive_d.png"
    assert (tmp_path / "out" / picture).read_bytes() == (out / picture).read_bytes()


@pytest.mark.slow
def test_scores_and_tables_of_data_are_enough(tmp_path, study):
    tests = {"test_t": {"sentences": 4, "seen_pairs": 1, "seen_pairs_percent": 25.0}}
    counts = {"sentences": 4, "dropped": {"empty": 1}}
    places = ("corpora/c/en-de/test", "d/corpora/en-de/train")
    options = {
        "overlaps": [write(tmp_path / "d/corpora/overlap.json", {"tests": tests})],
        "statistics": [write(tmp_path / "statistics.csv", "dataset,cutting,split,sentences\nd,doc,train,123456\n")],
        "counts": [write(tmp_path / f"{prefix}.counts.json", counts) for prefix in places],
    }
    html = render(tmp_path, (study[0], options))
    for text in ("Translation scores", "1 (25.0 %)", "123,456", "c/test", "d/train, filtered"):
        assert text in html
    assert "Learning curves" not in html
    assert "d,test_t,4" in (tmp_path / "out" / "tables" / "overlap.csv").read_text()


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["corpora/c/en-de/a", "corpora/c/en-de/b", "d/corpora/en-de/a"], ["c/a", "c/b", "d/a, filtered"]),
        (["x/results/d/corpora/en/a", "results/corpora/c/en/a"], ["c/a", "d/a, filtered"]),
        (["corpora/c/en-de/a", "corpora/c/ru-en/a"], ["c/a (en-de)", "c/a (ru-en)"]),
        (["d/corpora/en-de/a", "d/corpora/en/a"], ["d/a, filtered (en-de)", "d/a, filtered (en)"]),
        (["corpora/corpora/en-de/corpora"], ["corpora/corpora"]),
    ],
)
def test_counts_have_the_names_of_corpora_and_datasets(paths, names):
    assert list(name_counts([Path(f"{path}.counts.json") for path in paths])) == names


@pytest.mark.parametrize(
    ("option", "paths", "content", "message"),
    [
        ("histories", [history_of("a")], "step,train_loss\n1,2.5\n2,oops\n", "column 'train_loss' is not a number"),
        ("histories", [history_of("a")], None, "d/runs/a/seed1/history.csv: no such file"),
        ("histories", ["d/runs/a/history.csv"], "", "must end like {dataset}/runs/{system}/seed{seed}/history.csv"),
        ("histories", ["d/runs/a/seed1.5/history.csv"], "", "seed1.5/history.csv: the path must end like"),
        ("histories", ["xd/runs/a/seed1/history.txt"], "", "seed1/history.txt: the path must end like"),
        ("histories", [history_of("a"), f"x/{history_of('a')}"], "step\n1\n", "has the same names: pass one of them"),
        (
            "parsers",
            ["discourse/parsers/p/evaluation.json"],
            {"parseval": {}, "uas": [1]},
            "not a file of the expected",
        ),
        ("parsers", ["p.json"], {}, "p.json: the path must end like discourse/parsers/{parser}/evaluation.json"),
        ("segmenters", ["discourse/parsers/p/evaluation.json"], {}, "must end like discourse/segmenters/{segmenter}/"),
        ("roundtrips", ["d/text/roundtrip.json"], {"languages": {"en": {"causes": "none"}}}, "not a file of the expec"),
        ("roundtrips", ["roundtrip.json"], {}, "roundtrip.json: the path must end like {dataset}/text/roundtrip.json"),
        (
            "overlaps",
            ["d/corpora/overlap.json"],
            {"tests": {"t": {"seen_pairs": "x"}}},
            "key 'tests' must map tests to",
        ),
        ("overlaps", ["overlap.json"], {}, "overlap.json: the path must end like {dataset}/corpora/overlap.json"),
        ("tree-statistics", ["t.csv"], "name,edus\nd/parsed/train,many\n", "t.csv: line 2, column 'edus' is not a"),
        ("counts", ["train.counts.json"], {}, "train.counts.json: the path must end like {dataset}/corpora/{langu"),
        ("cases", ["nothing.csv"], "case,part,chrF,text\n", "report.cases: no case study 'nothing'"),
        ("overlap", ["overlap.json"], {}, "Unknown option: --overlap. Did you mean --overlaps?"),
    ],
)
def test_bad_file_leaves_no_report(tmp_path, study, capsys, monkeypatch, option, paths, content, message):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        for path in paths:
            write(tmp_path / path, content)
    assert_no_report(study, [f"--{option}", *paths], message, capsys)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"sistems": ["a"]}, "study.sistems: unknown key; did you mean 'systems'?"),
        ({"systems": "a"}, "study.systems: must be a list, such as [a, b], not 'a'"),
        ({"paper_columns": {"a": "20%"}}, "study.paper_columns.a: must be a mapping"),
        ({"origins": {"a": [1]}}, "study.origins.a.0: must be text"),
        ([], "study: expected a mapping of settings"),
    ],
)
def test_bad_facts_on_the_study_give_one_line(tmp_path, study, capsys, monkeypatch, facts, message):
    monkeypatch.chdir(tmp_path)
    assert_no_report(study, ["--study", json.dumps(facts)], message, capsys)
    write(tmp_path / "facts.json", "{\n")
    assert_no_report(study, ["--study", "@facts.json"], "facts.json: line 2 is not JSON", capsys)
    assert_no_report(study, ["--study", "{"], "study: not JSON", capsys)


def assert_no_report(study, words, message, capsys):
    assert main(["report", "collect", "--scores", *map(str, study[0]), "--out", "scores.csv"]) == 0
    assert main(["report", "render", "--scores", "scores.csv", "--out", "out", *words]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error
    assert not Path("out").exists()


@pytest.mark.slow
def test_empty_lists_of_files_are_accepted(tmp_path, study):
    options = [field.name.replace("_", "-") for field in fields(ReportFiles) if field.name != "benchmarks"]
    html = render_report(tmp_path, *study[0], options={name: [] for name in [*options, "fingerprints"]})
    assert "Translation scores" in html
