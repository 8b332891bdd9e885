"""The reader in Chromium with other studies: long lists, missing parts, a hundred runs, and four systems."""

import json
import random

import pytest
from reader_study import (
    ALIGNED,
    DOCUMENTS,
    FREE,
    LIST,
    ROWS,
    address,
    decoding_folder,
    make_study,
    outputs,
    render,
)

from docmt.files import write_json, write_jsonl


@pytest.mark.slow
def test_long_documents_and_lists_grow_by_a_button(tmp_path, browser, monkeypatch):
    monkeypatch.setitem(DOCUMENTS, "d/one", [("The dog barks.", "Der Hund bellt.")] * 400)
    for texts, last in ((ALIGNED, "Er bellt."), (FREE, "Es bellt.")):
        monkeypatch.setitem(texts, "d/one", ["Der Hund bellt."] * 399 + [last])
    options = make_study(tmp_path) | {"trees": []}
    path = tmp_path / "suite.jsonl"
    item = json.loads(path.read_text().splitlines()[0])
    write_jsonl(path, [item | {"id": f"{n}"} for n in range(700)])
    for system in ("aligned", "free"):
        scores = {"items": [{"id": f"{n}", "scores": [-1, -2]} for n in range(700)]}
        write_json(decoding_folder(tmp_path, system) / "suite_s.json", scores)
    browser.open(render(tmp_path, options), address(view="items"))
    assert len(browser.texts(LIST)) == 300
    assert browser.texts("#list button") == ["show 300 more of 400"]
    for _ in range(2):
        browser.run("document.querySelector('#list button').click()")
    assert len(browser.texts(LIST)) == 700
    assert browser.texts("#list button") == []
    browser.open(tmp_path / "reader.html", address(view="items", at="650"))
    assert browser.texts("[aria-current] .id") == ["650"]
    browser.open(tmp_path / "reader.html", address(view="changes", q="Er bellt"))
    browser.click(f"{ROWS} a")
    browser.wait("return document.querySelector('.focus th')?.textContent === '400'")
    browser.open(tmp_path / "reader.html")
    assert browser.texts("#main .more button") == ["show 200 more of 200"]
    browser.run("document.querySelector('#main .more button').click()")
    assert browser.texts("#main .more button") == []


@pytest.mark.slow
def test_view_without_suites_or_tests(tmp_path, browser):
    options = make_study(tmp_path)

    def only(*names, **inputs):
        paths = [path for system in ("aligned", "free") for path in outputs(tmp_path, system, names=names)]
        return {"study": options["study"], "outputs": paths, **inputs}

    suites, generative, texts = ({name: options[name]} for name in ("suites", "generative", "texts"))
    browser.open(render(tmp_path, only("suite_s.json", "generated_g.jsonl", **suites, **generative)))
    assert browser.texts("#main h2") == ["item-0"]
    browser.open(render(tmp_path, only("test_t.jsonl", **texts)), address(view="items"))
    assert browser.texts("#main h2") == ["d/one"]
    browser.open(render(tmp_path, only("generated_g.jsonl", **generative)))
    assert browser.texts("#main h2") == ["g-0"]
    browser.open(render(tmp_path, only()))
    assert browser.texts("#main") == ["Nothing is found."]


@pytest.mark.slow
def test_hundred_runs_open_in_three_seconds(tmp_path, browser, monkeypatch):
    """The page of a test set with 5,000 sentences contains only some documents, and says so."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 11))) for _ in range(8000)]
    texts = [" ".join(rng.choices(words, k=rng.randint(5, 30))) for _ in range(20000)]

    def made_up(prefix, languages, hypotheses, trees):
        return [
            {"id": f"document {n}", "src": rng.sample(texts, 50), "ref": rng.sample(texts, 50), "trees": {}}
            | {
                "runs": {
                    run: [[text, rng.randint(1, 999) / 10] for text in rng.sample(texts, 50)] for run in hypotheses
                }
            }
            for n in range(100)
        ]

    monkeypatch.setattr("docmt.report.reader.reader_page.read_documents", made_up)
    paths = [path for n in range(100) for path in outputs(tmp_path, f"system{n}", names=["test_t.jsonl"])]
    options = {"outputs": paths, "texts": ["d/corpora/en-de/test_t.documents.tsv"]}
    path = render(tmp_path, {"study": {"languages": {"d": ["en", "de"]}}, **options})
    assert path.stat().st_size <= 10e6
    seconds = []
    for _ in range(2):
        browser.open(path)
        seconds.append(browser.processor_seconds())
    assert seconds[1] - seconds[0] <= 3, "processor time, whatever else the machine does"
    assert "of 100 in the test set" in browser.texts("#list .caption")[0]


@pytest.fixture(scope="module")
def four_systems(tmp_path_factory):
    """A page with two additional systems: `poor`, the first system, and `best`, the last system."""
    folder = tmp_path_factory.mktemp("four")
    options = make_study(folder)
    for system, text in (("poor", "Nein."), ("best", None)):
        source, decoding = decoding_folder(folder, "aligned"), decoding_folder(folder, system)
        rows = [json.loads(line) for line in (source / "test_t.jsonl").read_text().split("\n") if line]
        references = iter(DOCUMENTS.values())
        for row in rows:
            row["sentences"] = [text or pair[1].replace("\r", "") for pair in next(references)]
        write_jsonl(decoding / "test_t.jsonl", rows)
        scores = [{"id": f"item-{n}", "scores": [-1, -2] if text is None else [-2, -1]} for n in range(3)]
        write_json(decoding / "suite_s.json", {"items": scores})
        (decoding / "generated_g.jsonl").write_bytes((source / "generated_g.jsonl").read_bytes())
    options["outputs"] = [path for system in ("poor", "free", "aligned", "best") for path in outputs(folder, system)]
    return render(folder, options, baseline="aligned")


@pytest.mark.slow
@pytest.mark.parametrize(("view", "test_set"), [("documents", "d/t"), ("items", "d/s")])
def test_baseline_and_best_are_compared_first(view, test_set, four_systems, browser):
    browser.open(four_systems, address(view=view, set=test_set))
    selection = "return [...document.querySelectorAll('select[name=a], select[name=b]')].map((choice) => choice.value)"
    ticked = "return [...document.querySelectorAll('input[name=system]:checked')].map((box) => box.value)"
    assert browser.run(selection) == ["aligned", "best"]
    assert browser.run(ticked) == ["aligned", "best"]
    browser.choose("b", "poor")
    assert browser.run(ticked) == ["poor", "aligned", "best"], "what is compared is shown"
    browser.choose("a", "free")
    assert browser.run(selection) == ["free", "poor"]
    assert browser.run(ticked) == ["poor", "free", "aligned", "best"]
    browser.open(four_systems, address(view=view, set=test_set, systems="free"))
    assert browser.run(ticked) == ["free"]
    assert browser.run(selection) == ["free", "best"]
