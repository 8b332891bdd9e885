"""The reader in Chromium: display, sorting, filters and search in all widths and colors."""

import pytest
from colors import contrast, luminance
from reader_study import (
    ARABIC,
    HOSTILE,
    LIST,
    ROWS,
    WRITTEN,
    address,
    make_study,
    render,
    unpack,
)

from docmt.report.styles import COLORS, MARKERS


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    return render(folder, make_study(folder), title="A <b>study</b>", labels={"aligned": HOSTILE})


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


@pytest.mark.slow
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
