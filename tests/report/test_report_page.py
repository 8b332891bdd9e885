"""`docmt report`, from score files to the page."""

import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

from docmt.cli.main import main

HOSTILE = "<script>alert(1)</script> & $x_1$"
HEADER = "step,epoch,seconds,tokens_per_second,train_loss,dev_loss,entropy_cross,entropy_encoder,entropy_decoder\n"


class Checker(HTMLParser):
    """Collects what a browser would fetch, ids and the tags left open."""

    VOID = ("meta", "br", "img", "link", "hr")

    def __init__(self):
        super().__init__()
        self.tags, self.links, self.ids, self.open = [], [], [], []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href")]
        self.ids += [values["id"]] if "id" in values else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def study(tmp_path):
    """Score files of two systems with two seeds, one score missing, and their histories."""
    files, histories = [], []
    for system in ("base", HOSTILE):
        for seed in (1, 2):
            keys = {"dataset": "d", "system": system, "seed": seed}
            scores = [
                keys | {"test": "t", "metric": "s-BLEU", "value": 20 + seed, "n": 5, "signature": "nrefs:1"},
                keys | {"test": "t", "metric": "chrF", "value": None, "n": 5, "signature": "nrefs:1"},
            ]
            scores += [
                keys | {"test": "pronoun", "metric": "contrastive accuracy", "value": 60 + seed, "n": 40, "chance": 50,
                        "phenomenon": "pronoun", "distance": d, "low": 50, "high": 70, "signature": "strict"}
                for d in (None, 1, 2)
            ]  # fmt: skip
            path = tmp_path / f"{len(files)}.json"
            path.write_text(json.dumps({"provenance": {"commit": "c0ffee", "fingerprint": "f00"}, "scores": scores}))
            files.append(str(path))
        name = "base" if system == "base" else "other"
        path = tmp_path / f"{name}.csv"
        path.write_text(HEADER + "100,1,5,20,8.5,,,,\n200,2,9,21,7.5,7.0,6.1,5.2,nan\n300,3,14,20,6.5,6.0,5.9,5.3,\n")
        histories += [f"d/{name}/seed{seed}={path}" for seed in (1, 2)]
    return files, histories


def render(folder, study, *options):
    files, histories = study
    assert main(["report", "gather", "--scores", *files, "--out", str(folder / "scores.csv")]) == 0
    arguments = ["--scores", str(folder / "scores.csv"), "--out", str(folder / "out"), "--histories", *histories]
    assert main(["report", "render", *arguments, *options]) == 0
    return (folder / "out" / "report.html").read_text(encoding="utf-8")


def test_page_is_whole_and_self_contained(tmp_path, study, capsys):
    html = render(tmp_path, study)
    checker = Checker()
    checker.feed(html)
    assert not checker.open
    assert "script" not in checker.tags
    assert "img" not in checker.tags
    assert all(link.startswith("#") for link in checker.links)
    assert len(checker.ids) == len(set(checker.ids))
    assert {link[1:] for link in checker.links} <= set(checker.ids)
    assert "&lt;script&gt;" in html
    assert "currentColor" in html
    assert "prefers-color-scheme: dark" in html
    assert not re.search(r"https?://(?!www\.w3\.org/)", html)
    printed = capsys.readouterr().out
    assert "Translation scores" in printed
    assert "Contrastive accuracy" in printed
    assert "21.50 ± 0.71" in printed


def test_tables_and_figures_are_files(tmp_path, study):
    render(tmp_path, study)
    out = tmp_path / "out"
    assert {path.stem for path in (out / "tables").glob("*.csv")} == {
        path.stem for path in (out / "tables").glob("*.tex")
    }
    assert (out / "tables" / "results.csv").read_text().startswith("dataset,test,system,s-BLEU,s-BLEU sd")
    figures = {path.name for path in (out / "figures").iterdir()}
    assert {"learning_curves_d.svg", "learning_curves_d.png", "entropies_d.svg", "contrastive_d.svg"} <= figures
    for path in (out / "figures").glob("*.svg"):
        ElementTree.parse(path)
        assert f"figures/{path.name}" in (out / "report.md").read_text()
    assert sorted(path.name for path in out.iterdir()) == [
        ".checksums",
        "figures",
        "report.html",
        "report.md",
        "tables",
    ]


def test_equal_input_gives_equal_bytes(tmp_path, study):
    first = render(tmp_path, study)
    picture = (tmp_path / "out" / "figures" / "contrastive_d.png").read_bytes()
    assert render(tmp_path, study) == first
    assert (tmp_path / "out" / "figures" / "contrastive_d.png").read_bytes() == picture


def test_data_tables_from_files(tmp_path, study):
    (tmp_path / "d").mkdir()
    overlap = tmp_path / "d" / "overlap.json"
    overlap.write_text(json.dumps({"tests": {"test_t": {"sentences": 4, "seen_pairs": 1, "seen_pairs_percent": 25.0}}}))
    old = tmp_path / "old.json"
    old.write_text(json.dumps([{"test": "u", "sentences": 7, "sentences_in_train": 2}]))
    statistics = tmp_path / "statistics.csv"
    statistics.write_text("dataset,segmentation,split,sentences\nd,doc,train,123456\n")
    counts = tmp_path / "d" / "test.counts.json"
    counts.write_text(json.dumps({"sentences": 4, "dropped": {"empty": 1}}))
    named = ["--overlaps", str(overlap), f"e={old}", "--statistics", str(statistics), "--counts", str(counts)]
    html = render(tmp_path, study, *named)
    assert "1 (25.0 %)" in html
    assert "123,456" in html
    assert "d/test" in html
    assert "d,test_t,4" in (tmp_path / "out" / "tables" / "overlap.csv").read_text()


def test_scores_alone_are_enough(tmp_path, study):
    files, _ = study
    html = render(tmp_path, (files, []))
    assert "Learning curves" not in html
    assert "Translation scores" in html


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ("d/s={}", "write DATASET/SYSTEM/seedN=FILE"),
        ("d/s/x={}", "write DATASET/SYSTEM/seedN=FILE"),
        ("d/s/seed1={}", "line 3, column 'train_loss' is not a number: 'oops'"),
        ("d/s/seed1=none.csv", "none.csv: no such file"),
    ],
)
def test_bad_histories_give_one_line_and_no_report(tmp_path, study, capsys, history, message):
    path = tmp_path / "bad.csv"
    path.write_text("step,train_loss\n1,2.5\n2,oops\n")
    main(["report", "gather", "--scores", *study[0], "--out", str(tmp_path / "scores.csv")])
    arguments = ["--scores", str(tmp_path / "scores.csv"), "--out", str(tmp_path / "out")]
    assert main(["report", "render", *arguments, "--histories", history.format(path)]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error
    assert not (tmp_path / "out").exists()
