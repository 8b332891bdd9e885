"""The reader in Chromium: display, sorting, filters and search in all widths and colors."""

import json
import random
from urllib.parse import urlencode

import pytest
from colors import contrast, luminance
from reader_study import (
    ALIGNED,
    ARABIC,
    DOCUMENTS,
    FREE,
    HOSTILE,
    WRITTEN,
    decoding_folder,
    make_study,
    outputs,
    render,
    unpack,
)
from webdriver import Browser

from docmt.files import write_json, write_jsonl
from docmt.report.styles import COLORS, MARKERS

ROWS = ".sentences tbody tr"
LIST = "#list .id"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    return render(folder, make_study(folder), title="A <b>study</b>", labels={"aligned": HOSTILE})


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def browser(window):
    """Window for this module. A test fails if it leaves an error in the console."""
    window.resize(1300, 900)
    yield window
    assert window.console() == []
    assert window.run("return window.attacked === undefined")


def address(**state):
    return "#" + urlencode(state)


def test_a_document_is_shown_by_sentence(page, browser):
    browser.open(page)
    assert browser.texts("h1") == ["A <b>study</b>"]
    assert browser.texts("#main h2") == ["d/one"]
    assert browser.texts(".sentences thead th") == ["#", "source", "reference", f"{HOSTILE} (A)", "free (B)"]
    second_row = browser.texts(f"{ROWS}:nth-child(2) .text")
    assert second_row == ["It is <b>loud</b>.", "Er ist <b>laut</b>.", "Es ist <b>laut</b>."]
    assert browser.run(f"return document.querySelector('{ROWS} td:last-child').rowSpan") == 4, "a block"
    assert browser.texts("#list .caption") == ["3 documents"]


def test_words_that_differ_are_marked(page, browser):
    browser.open(page, address(systems="aligned"))
    assert browser.texts(f"{ROWS} mark") == ["Er", "Es", "heute"]
    browser.open(page, address(at="d/three"))
    assert browser.texts(f"{ROWS}:first-child mark") == ["Kuh kauft es"], "the other system is right"
    browser.open(page, address(at="d/three", marks="pair"))
    assert browser.texts(f"{ROWS}:first-child mark") == ["Kuh kauft es", "Katze sieht ihn"]
    browser.choose("marks", "none")
    assert browser.texts(f"{ROWS} mark") == []


@pytest.mark.parametrize("a", ["aligned", "free"])
def test_documents_and_sentences_are_sorted(a, page, browser):
    data = unpack(page)
    run = [run["key"] for run in data["runs"]].index(a)
    documents = data["tests"][0]["documents"]

    def score(document, run):
        cells = [cell for cell in document["runs"][str(run)] if cell]
        return sum(cell[1] for cell in cells) / len(cells)

    worst = [document["id"] for document in sorted(documents, key=lambda d: score(d, run))]
    first, *rest = documents  # the first has a block beside sentences, whose chrF is another measure
    apart = [document["id"] for document in sorted(rest, key=lambda d: -abs(score(d, 0) - score(d, 1)))] + [first["id"]]
    browser.open(page, address(a=a, b="free" if a == "aligned" else "aligned", at="d/three"))
    for order, expected in {"worst": worst, "best": worst[::-1], "difference": apart}.items():
        browser.choose("list", order)
        assert browser.texts(LIST) == expected
    assert browser.texts("#main h2") == ["d/three"], "what is open stays open"
    cells = documents[2]["runs"][str(run)]
    browser.choose("sort", "worst")
    order = [f"{i + 1}" for i in sorted(range(2), key=lambda i: cells[i][1])]
    assert browser.texts(f"{ROWS} th") == order
    browser.choose("sort", "best")
    assert browser.texts(f"{ROWS} th") == order[::-1]
    browser.open(page, address(a=a, at="d/one", sort="difference"))
    assert browser.texts(f"{ROWS} th") == ["1", "2", "3", "4"], "a block has no difference"


def test_sorted_sentences_of_a_block_name_it(page, browser):
    browser.open(page, address(sort="worst", a="aligned"))
    assert len(browser.texts(f"{ROWS} td")) == 4 * 4
    assert browser.texts(f"{ROWS} td:last-child .quiet") == ["in a block with the sentences before"] * 3


def test_search_filters_documents_and_marks_hits(page, browser):
    browser.open(page)
    browser.type("input[name=q]", "KATZE")
    browser.wait(f"return document.querySelectorAll('{LIST}').length === 1")
    assert browser.texts(LIST) == ["d/three"]
    assert browser.texts("#list .caption") == ["1 of 3 documents"]
    assert "q=KATZE" in browser.run("return location.hash")
    assert browser.run("return document.activeElement.name") == "q", "one can go on typing"
    browser.open(page, address(q="Katze", at="d/three", marks="none"))
    assert browser.texts("mark.hit") == ["Katze", "Katze"]
    browser.open(page, address(q="<b>", marks="none"))
    assert browser.texts("mark.hit") == ["<b>"] * 3
    browser.open(page, address(q="(.*[+?^$"))
    assert browser.texts(LIST) == []


def test_systems_can_be_left_out(page, browser):
    browser.open(page)
    browser.click("input[value=free]")
    assert browser.texts(".sentences thead th")[3:] == [f"{HOSTILE} (A)"]
    browser.click("input[value=aligned]")
    assert browser.texts(".sentences thead th") == ["#", "source", "reference"]
    browser.click("input[value=free]")
    assert browser.texts(".sentences thead th")[3:] == ["free (B)"]


def test_link_opens_the_same_view(page, browser):
    browser.open(page)
    browser.choose("marks", "pair")
    browser.click("#list li:nth-child(3) a")
    browser.run("history.back()")
    browser.wait("return document.querySelector('#main h2').textContent === 'd/one'")
    browser.run("history.forward()")
    browser.wait("return document.querySelector('#main h2').textContent === 'd/three'")
    link, text = browser.run("return [location.hash, document.getElementById('main').textContent]")
    browser.open(page, link)
    assert browser.run("return document.getElementById('main').textContent") == text
    assert browser.texts("#main h2") == ["d/three"]
    browser.open(
        page, address(view="x", set="x", at="x", systems="x,y", a="x", b="x", marks="x", sort="x", list="x", tree="x")
    )
    assert browser.texts("#main h2") == ["d/one"]


def test_arrows_go_through_the_list(page, browser):
    browser.open(page)
    seen = []
    for key in ("right", "right", "right", "left"):
        browser.press(key)
        seen += browser.texts("#main h2")
    assert seen == [HOSTILE, "d/three", "d/three", HOSTILE]
    browser.press("/")
    browser.press("right")
    assert browser.texts("#main h2") == [HOSTILE], "in a field, arrows move the caret"


def test_ugly_text_stays_text(page, browser):
    browser.open(page, address(at=HOSTILE))
    cells = browser.texts(f"{ROWS}:first-child .text")
    assert cells == [HOSTILE] * 4
    assert browser.texts(f"{ROWS}:nth-child(2) .text")[0] == ARABIC
    directions = "return [...document.querySelectorAll(arguments[0])].map((e) => getComputedStyle(e).direction)"
    assert browser.run(directions, f"{ROWS}:nth-child(2) .text") == ["rtl", "ltr", "rtl", "rtl"]


def test_changes_are_sorted_by_size(page, browser):
    data = unpack(page)["tests"][0]["documents"]
    expected = []
    for document in data:
        one, two = document["runs"]["0"], document["runs"]["1"]
        if not two[0][2:]:  # no block
            pairs = enumerate(zip(one, two, strict=True))
            expected += [(f"{document['id']}, {n + 1}", b[1] - a[1]) for n, (a, b) in pairs if a[0] != b[0]]
    assert len(expected) >= 2
    assert min(change for _, change in expected) < 0 < max(change for _, change in expected), "both directions"
    browser.open(page, address(a="aligned", b="free"))
    browser.click("#to-changes")
    sentences = f"{ROWS} td:first-child"
    orders = {"most": lambda row: -abs(row[1]), "gained": lambda row: -row[1], "lost": lambda row: row[1]}
    for order, key in orders.items():
        browser.choose("change", order)
        assert browser.texts(sentences) == [*(name for name, _ in sorted(expected, key=key)), "d/one, 1–4"]
    *texts, last = browser.texts(f"{ROWS} td:last-child")
    assert last == "–"
    assert [text.split(" ")[0] for text in browser.texts(f"{ROWS}:last-child .score")] == ["mean", "chrF"]
    changes = [float(text.replace("−", "-")) for text in texts]
    expected_changes = sorted(change for _, change in expected)
    assert changes == pytest.approx(expected_changes, abs=0.051)
    better = sum(change > 0 for change in expected_changes)
    assert f"differ in {len(expected) + 1} of" in browser.texts("#main .caption")[0]
    sums = f"{better} are better in B, {len(expected_changes) - better} in A; blocks, which are not compared: 1."
    assert sums in browser.texts("#main .caption")[0]
    browser.open(page, address(view="changes", a="aligned", b="free", q="Kuh"))
    assert browser.texts(sentences) == ["d/three, 1"]
    assert browser.texts(f"{ROWS} mark.differs") == ["Kuh", " kauft es", "Katze sieht ihn"]
    assert browser.texts(f"{ROWS} td:nth-child(4) mark.hit") == ["Kuh"]
    browser.click(f"{sentences} a")
    browser.wait("return document.querySelector('#main h2').textContent === 'd/three'")
    assert browser.texts(".focus th") == ["1"]
    assert browser.texts(".sentences thead th")[3:] == [f"{HOSTILE} (A)", "free (B)"]
    browser.open(page, address(view="changes", a="free", b="free"))
    assert browser.texts(ROWS) == [], "a system does not differ from itself"


def test_report_link_opens_seeds(tmp_path, browser):
    page = render(tmp_path, make_study(tmp_path, seeds=(1, 2)))
    filters = {"phenomenon": "gender", "distance": "7–10", "kind": "nonsense"}
    browser.open(page, address(view="items", set="d/g", a="free", **filters))
    assert browser.run("return document.querySelector('select[name=a]').value") == "free.1"
    assert browser.texts(LIST) == ["g-2"], "distance 7; a filter that the suite does not have leaves all"


def test_marks_and_colors_match_the_report(page, browser):
    browser.open(page)
    marks = browser.run(
        "return [...document.querySelectorAll('.sentences th .sign, .systems .sign')]"
        ".map((sign) => [getComputedStyle(sign, '::before').content, getComputedStyle(sign).color])"
    )
    expected = [[f'"{sign}"', rgb(color)] for sign, color in zip(MARKERS.values(), COLORS[:2], strict=False)]
    assert marks in (expected * 2, expected[::-1] * 2)


def rgb(color):
    return f"rgb({', '.join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))})"


def test_a_tree_has_an_arc_for_each_dependent(page, browser):
    browser.open(page, address(tree="parsed"))
    assert browser.texts(".tree .relation") == [
        "root",
        "Elaboration → 1",
        "Same-Unit → 2",
        "Joint → 1",
        "</script> → 1",
    ]
    browser.wait("return document.querySelectorAll('.arcs path').length === 4")
    browser.run("document.querySelector('.tree li').dispatchEvent(new MouseEvent('mouseenter'))")
    assert len(browser.texts(".tree li.related")) == 3
    browser.open(page)
    browser.click(".trees summary")
    browser.wait("return location.hash.includes('tree=parsed')")


def test_items_are_filtered(page, browser):
    browser.open(page, address(view="items"))
    expected = {"": [0, 1, 2], "right": [0], "wrong": [1, 2], "won": [0], "lost": [2], "differ": [0, 2]}
    for outcome, numbers in expected.items():
        browser.choose("outcome", outcome)
        assert browser.texts(LIST) == [f"item-{number}" for number in numbers]
    browser.choose("outcome", "")
    for key, value, numbers in (("phenomenon", "deixis", [2]), ("distance", "2", [1]), ("kind", "du", [2])):
        browser.choose(key, value)
        assert browser.texts(LIST) == [f"item-{number}" for number in numbers]
        browser.choose(key, "")


def test_item_shows_choices_of_systems(page, browser):
    browser.open(page, address(view="items", at="item-0"))
    assert browser.texts(".candidate .text") == ["Er schläft.", "Es schläft."]
    assert browser.texts(".candidate mark") == ["Er", "Es"]
    rows = [browser.texts(f".choices tbody tr:nth-child({n}) td") for n in (1, 2)]
    assert rows == [[HOSTILE, "−1.00", "−2.50", "1.50", "✓ right"], ["free", "−3.00", "−2.00", "−1.00", "✗ wrong"]]
    assert browser.texts(".deciding th") == ["1"]
    browser.open(page, address(view="items", at="item-2"))
    assert browser.texts(".choices tbody tr:nth-child(2) td") == ["free", "−1.00", "−∞", "∞", "✓ right"]


def test_items_are_sorted_by_margin(page, browser):
    browser.open(page, address(view="items", list="worst"))
    assert browser.texts(LIST) == ["item-1", "item-2", "item-0"]
    browser.choose("list", "best")
    assert browser.texts(LIST) == ["item-0", "item-2", "item-1"]
    browser.choose("list", "difference")
    assert browser.texts(LIST)[:2] == ["item-2", "item-0"]


def test_generative_item_shows_expectations(page, browser):
    browser.open(page, address(view="items", set="d/g"))
    assert browser.texts(f"{ROWS} td:nth-child(2) .text") == ["The cat is here.", "I see it."]
    assert browser.texts(".deciding th") == ["1"]
    assert browser.texts(".focus p") == ["expectedsie", "Ich sehe sie."]
    assert browser.texts(".focus mark.expected") == ["sie"]
    rows = [browser.texts(f".choices tbody tr:nth-child({n}) td") for n in (1, 2)]
    assert rows == [[HOSTILE, WRITTEN["aligned"][0], "✓ right"], ["free", "Ich sehe es.", "✗ wrong"]]
    assert browser.texts(".choices mark.expected") == ["Sie"]
    assert browser.texts("#list li:first-child .quiet") == ["gender · distance 1 · ✓ / ✗"]
    assert "Right in these 3 items" in browser.texts("#main .caption")[0]
    browser.open(page, address(view="items", set="d/g", at="g-1"))
    assert browser.texts(".focus th") == ["1"]
    assert browser.texts(".choices mark.expected") == ["TUT es"]
    browser.open(page, address(view="items", set="d/g", at="g-2"))
    assert browser.texts(".deciding") == [], "further away than the item goes"
    assert browser.texts(".choices tbody td:nth-child(2)") == ["Sie" + HOSTILE, ""]


def test_generative_items_are_filtered_searched_and_sorted(page, browser):
    browser.open(page, address(view="items", set="d/g"))
    browser.choose("outcome", "lost")
    assert browser.texts(LIST) == ["g-1"]
    browser.choose("outcome", "")
    for list_order, numbers in (("worst", [1, 2, 0]), ("difference", [0, 1, 2])):
        browser.choose("list", list_order)
        assert browser.texts(LIST) == [f"g-{number}" for number in numbers]
    browser.open(page, address(view="items", set="d/g", q="tut ES"))
    assert browser.texts(LIST) == ["g-1"]
    assert browser.texts("mark.hit") == ["tut es", "TUT es"]
    browser.choose("set", "d/s")
    assert browser.texts(LIST) == []


def test_views_change_by_click(page, browser):
    browser.open(page)
    browser.click("#to-items")
    assert browser.texts("#main h2") == ["item-0"]
    browser.click("#to-documents")
    assert browser.texts("#main h2") == ["d/one"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_light_and_dark(scheme, page, browser):
    browser.emulate("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(page)
    colors = browser.run(
        "return ['body', 'mark.differs'].map((s) => getComputedStyle(document.querySelector(s)))"
        ".map((style) => [style.color, style.backgroundColor])"
    )
    for ink, ground in colors:
        assert contrast(ink, ground) > 7
    is_dark = luminance(colors[0][1]) < 0.5
    assert is_dark == (scheme == "dark")


@pytest.mark.parametrize(("view", "test_set"), [("documents", "d/t"), ("items", "d/s"), ("items", "d/g")])
def test_a_phone_shows_everything_below_one_another(view, test_set, page, browser):
    browser.resize(360, 700)
    browser.open(page, address(view=view, set=test_set, tree="parsed"))
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.run("return getComputedStyle(document.querySelector('.sentences td')).display") == "block"


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
    """With 5,000 sentences, the page contains a sample of its documents, and a note on it."""
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
