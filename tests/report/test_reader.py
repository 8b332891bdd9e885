"""Reader content: texts, scores, samples and trees, as its page embeds them."""

import json
import re
import shutil
from pathlib import Path

import pytest
from elements import Elements
from reader_study import (
    ALIGNED,
    DOCUMENTS,
    FREE,
    HOSTILE,
    ITEMS,
    decoding_folder,
    make_study,
    outputs,
    reader_words,
    render,
    unpack,
    write_hypotheses,
)
from sacrebleu import sentence_chrf
from smoke_study import StudyView

from docmt.cli.main import main
from docmt.config.loading import load_config, merge, read_config_file
from docmt.files import write_json, write_jsonl
from docmt.report.reader.reader_page import fit, sample
from docmt.report.reader.shown_documents import join_words


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reader")
    return render(folder, make_study(folder), title=HOSTILE, labels={"free": HOSTILE})


def test_every_sentence_has_its_source_reference_and_translations(page):
    data = unpack(page)
    (part,) = data["tests"]
    assert (part["name"], part["languages"], part["total"]) == ("d/t", ["en", "de"], 3)
    assert [run["label"] for run in data["runs"]] == ["aligned", HOSTILE]
    for document, (name, pairs) in zip(part["documents"], DOCUMENTS.items(), strict=True):
        assert document["id"] == name
        assert document["src"] == [src for src, _ in pairs]
        references = [tgt.replace("\r", "") for _, tgt in pairs]
        assert document["ref"] == references
        assert [text for text, _ in document["runs"]["0"]] == ALIGNED[name]
        for (text, score), reference in zip(document["runs"]["0"], references, strict=True):
            assert score == pytest.approx(sentence_chrf(text, [reference]).score, abs=0.0501)


def test_other_numbers_of_sentences_make_one_block(page):
    one, *others = unpack(page)["tests"][0]["documents"]
    joined, reference = " ".join(FREE["d/one"]), " ".join(tgt for _, tgt in DOCUMENTS["d/one"])
    score = round(sentence_chrf(joined, [reference]).score, 1)
    assert one["runs"]["1"] == [[joined, score, 4], None, None, None]
    for document in others:
        assert [text for text, _ in document["runs"]["1"]] == FREE[document["id"]]


def test_items_have_scores_of_all_systems(page):
    part = unpack(page)["suites"][0]
    assert part["total"] == len(part["items"]) == 3
    assert [item["runs"]["0"]["right"] for item in part["items"]] == [True, False, False]
    assert [item["runs"]["1"]["right"] for item in part["items"]] == [False, False, True]
    assert [item["runs"]["0"]["scores"] for item in part["items"]] == [item["scores"]["aligned"] for item in ITEMS]
    assert part["items"][2]["runs"]["1"]["scores"] == [-1.0, None], "JSON has no infinity"
    assert [(item["distance"], item["kind"]) for item in part["items"]] == [(1, None), (2, "far"), (None, "du")]


@pytest.mark.parametrize("ties", [{}, {"ties": "first"}])
def test_a_study_tells_the_reader_of_its_ties(pytestconfig, ties):
    study = read_config_file(pytestconfig.rootpath / "config/examples/smoke.yaml")
    view = StudyView(load_config(merge(study, {"evaluation": {"contrast": ties}})))
    assert json.loads(view.reader().params["study"])["ties"] == ties.get("ties", "wrong")


def test_ties_can_go_to_the_first(tmp_path):
    study = {"languages": {"d": ["en", "de"]}, "ties": "first"}
    items = unpack(render(tmp_path, make_study(tmp_path) | {"study": study}))["suites"][0]["items"]
    assert [item["runs"]["0"]["right"] for item in items] == [True, False, True]


def test_generative_items_show_outputs(page):
    part = unpack(page)["suites"][1]
    assert (part["name"], part["languages"], part["total"]) == ("d/g", ["en", "de"], 3)
    items = part["items"]
    assert [item["runs"]["0"]["right"] for item in items] == [True, False, False]
    assert [item["runs"]["1"]["right"] for item in items] == [False, True, False]
    assert items[0]["runs"]["0"]["payload"] == ["𝄞 <b>Da</b>, ", "Sie", "!"]
    assert items[1]["runs"]["1"]["payload"] == ["Das ", "TUT es", "!"]
    assert [item["runs"]["1"]["payload"] for item in items[::2]] == [["Ich sehe es."], [""]]
    assert [item["reference"] for item in items] == [["Ich sehe ", "sie", "."], None, [HOSTILE]]
    assert [(item["expected"], item["sentence"], item["distance"], item["kind"]) for item in items] == [
        ("sie", 1, 1, None),
        ("tut es", 0, None, "<b>"),
        ("sie", 1, 7, None),
    ]


def test_chinese_words_are_joined_without_blanks():
    assert join_words(("我们", "用", "docmt", "翻译", "。")) == "我们用 docmt 翻译。"


def test_trees_are_those_of_the_document(page):
    one, *others = unpack(page)["tests"][0]["documents"]
    assert one["trees"]["parsed"] == [
        [0, "The dog barks .", -1, "root"],
        [1, "It is", 0, "Elaboration"],
        [1, "<b>loud</b> .", 1, "Same-Unit"],
        [2, "", 0, "Joint"],
        [3, "We sleep .", 0, "</script>"],
    ]
    assert all(document["trees"] == {} for document in others)


def test_edus_without_a_tree_have_no_heads(tmp_path):
    options = make_study(tmp_path)
    path = tmp_path / "trees.jsonl"
    write_jsonl(path, [json.loads(path.read_text().splitlines()[0]) | {"dependency": None}])
    edus = unpack(render(tmp_path, options))["tests"][0]["documents"][0]["trees"]["parsed"]
    assert {(head, relation) for _, _, head, relation in edus} == {(None, "")}


def test_no_text_becomes_markup_and_nothing_is_loaded(page):
    html = page.read_text()
    elements = Elements(html)
    assert elements.tags.count("script") == 2
    assert "img" not in elements.tags
    assert "attacked" not in re.sub(r"<title>.*?</title>|<h1>.*?</h1>", "", html, flags=re.DOTALL)
    assert [link for link in elements.links if not link.startswith("#")] == ["report.html"]
    assert "default-src 'none'" in html
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", html)


def test_several_seeds_are_named_by_their_seed(tmp_path):
    runs = unpack(render(tmp_path, make_study(tmp_path, seeds=(1, 7))))["runs"]
    assert [run["key"] for run in runs] == ["aligned.1", "aligned.7", "free.1", "free.7"]
    assert runs[3]["label"] == "free, seed 7"


def test_a_run_of_two_datasets_is_one(tmp_path):
    options = make_study(tmp_path)
    for folder in ("corpora/en-de", "runs/free"):
        shutil.copytree(tmp_path / "d" / folder, tmp_path / "e" / folder)
    options["study"]["languages"]["e"] = ["en", "de"]
    options["outputs"] += outputs(tmp_path, "free", dataset="e")
    options["texts"] += [path.replace("/d/corpora", "/e/corpora") for path in options["texts"]]
    options["suites"].append(options["suites"][0].replace("d/", "e/", 1))
    options["generative"].append(options["generative"][0].replace("d/", "e/", 1))
    data = unpack(render(tmp_path, options))
    assert [part["name"] for part in data["suites"]] == ["d/s", "e/s", "d/g", "e/g"]
    assert [run["key"] for run in data["runs"]] == ["aligned", "free"]
    assert [list(part["documents"][0]["runs"]) for part in data["tests"]] == [["0", "1"], ["1"]]
    assert data["tests"][1]["documents"][0]["runs"]["1"] == data["tests"][0]["documents"][0]["runs"]["1"]


def long_study(n):
    """`n` documents with texts that compress badly, and as many items."""
    documents = [{"id": f"{i}", "text": f"{pow(3, i + 100, 10**60)}"} for i in range(n)]
    return {
        "tests": [{"name": "d/t", "total": n, "documents": documents}],
        "suites": [
            {"name": "d/s", "total": n, "items": documents},
            {"name": "d/u", "total": 1, "items": documents[:1]},
        ],
    }


def test_a_sample_is_evenly_spaced():
    data = sample(long_study(100), 0.04)
    assert [document["id"] for document in data["tests"][0]["documents"]] == ["0", "25", "50", "75"]
    assert [len(part["items"]) for part in data["suites"]] == [4, 1]
    assert data["tests"][0]["total"] == 100
    assert sample(long_study(7), 1.0) == long_study(7)


@pytest.mark.parametrize("max_bytes", [3_000, 30_000, 60_000, 90_000])
def test_page_data_is_small(max_bytes):
    data = long_study(1000)
    packed = fit(data, max_bytes)
    assert max_bytes * 0.6 < len(packed) <= max_bytes
    assert len(fit(data, 1e9)) > max_bytes, "all of it is longer"


def test_one_document_remains_whatever_the_limit(caplog):
    packed = fit(long_study(50), 10)
    assert len(packed) > 10
    assert "even with one document" in caplog.text


def test_the_limit_is_that_of_the_whole_page(tmp_path):
    options = make_study(tmp_path)
    whole = render(tmp_path, options)
    assert len(unpack(whole)["tests"][0]["documents"]) == 3
    size = whole.stat().st_size
    smaller = render(tmp_path, options, reader={"max_megabytes": (size - 40) / 1e6})
    assert smaller.stat().st_size < size
    part = unpack(smaller)["tests"][0]
    assert (part["total"], len(part["documents"])) == (3, 2)


def test_page_is_deterministic(tmp_path):
    options = make_study(tmp_path)
    assert render(tmp_path, options).read_bytes() == render(tmp_path, options).read_bytes()


SHORTER = ALIGNED | {"d/three": ["Nur eine."]}


@pytest.mark.parametrize(
    ("system", "file", "write", "message"),
    [
        (
            "aligned",
            "test_t.jsonl",
            lambda path: write_hypotheses(path, SHORTER, aligned=True),
            "line 3: 1 sentences for 2 source sentences",
        ),
        ("free", "suite_s.json", lambda path: write_json(path, {"items": []}), "do not contain item 'item-0'"),
        (
            "free",
            "generated_g.jsonl",
            lambda path: write_jsonl(path, [{"id": "g-0", "sentences": []}]),
            "its 1 items differ from the suite",
        ),
        ("free", "test_t.jsonl", Path.unlink, "d/runs/free/seed1/decoding/test_t.jsonl"),
    ],
)
def test_misfit_outputs_are_one_line(system, file, write, message, tmp_path, capsys):
    options = make_study(tmp_path)
    write(decoding_folder(tmp_path, system) / file)
    assert_one_line(options, message, tmp_path, capsys)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"study": {"languages": {"d": ["en"]}}},
            "study.languages.d: must be a source and a target language",
        ),
        ({"study": {"languages": {"e": ["en", "de"]}}}, "study.languages: no dataset 'd'"),
        ({"study": {"ties": "last"}}, "study.ties: must be 'wrong' or 'first', not 'last'"),
        ({"study": {"tie": "first"}}, "study.tie: unknown key; did you mean 'ties'?"),
        ({"study": []}, "study: expected a mapping of settings"),
        ({"texts": []}, "d/runs/aligned/seed1/decoding/test_t.jsonl: also pass its text or suite in --texts"),
        ({"suites": []}, "d/runs/aligned/seed1/decoding/suite_s.json: also pass its text or suite"),
        ({"suites": ["e/s=x.jsonl"]}, "study.languages: no dataset 'e'"),
        ({"suites": ["s=x.jsonl"]}, "--suites s=x.jsonl: expected DATASET/SUITE=FILE"),
        ({"suites": ["d/=x.jsonl"]}, "--suites d/=x.jsonl: expected DATASET/SUITE=FILE"),
        ({"suites": ["d/s"]}, "--suites d/s: expected DATASET/SUITE=FILE"),
        ({"generative": ["d/g=x.jsonl", "d/g=y.jsonl"]}, "--generative d/g: 2 files: pass one"),
        ({"trees": ["d/parsed=x.jsonl"]}, "--trees d/parsed=x.jsonl: expected DATASET/TEST/TREES=FILE"),
        ({"trees": ["d/u/parsed=x.jsonl"]}, "--trees: d/u: also pass the text of this test in --texts"),
        ({"outputs": ["d/base/seed1/decoding/test_t.jsonl"]}, "the path must end like {dataset}/runs/{system}/seed{"),
        ({"outputs": ["d/runs/a/seedx/decoding/test_t.jsonl"]}, "seedx/decoding/test_t.jsonl: the path must end like"),
        ({"outputs": ["x/d/runs/a/seed1/decoding/s", "d/runs/a/seed1/decoding/s"]}, "has the same names: pass one"),
        ({"texts": ["text/test_t.documents.tsv"]}, "the path must end like {dataset}/corpora/{languages}/{split}"),
        ({"texts": ["d/corpora/en-de/test_t.en"]}, "also pass d/corpora/en-de/test_t.documents.tsv"),
    ],
)
def test_misfit_options_are_one_line(changes, message, tmp_path, capsys):
    assert_one_line(make_study(tmp_path) | changes, message, tmp_path, capsys)


def assert_one_line(options, message, folder, capsys):
    assert main(["report", "reader", *reader_words(options), "--out", str(folder / "reader.html")]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
    assert not (folder / "reader.html").exists()
