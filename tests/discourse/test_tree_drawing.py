"""Pictures of trees: well-formed SVG that shows every EDU and arc, whatever the text and the shape of the tree."""

import itertools
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_fixtures import deep_tree, random_heads, run

from docmt.discourse.constituents import binarize, join, join_pair, leaf
from docmt.discourse.dependencies import NO_HEAD, DependencyTree
from docmt.discourse.documents import DiscourseDocument, Edu, write_discourse
from docmt.discourse.tree_drawing import (
    LABEL_ROOMS,
    LEVEL_WIDTH,
    OFFSET,
    TEXT_SIZE,
    TEXT_WIDTH,
    assign_lanes,
    draw_constituents,
    draw_dependencies,
    join_words,
    place_constituents,
    text_width,
    wrap,
)
from docmt.errors import UserError

DRAW = {"dependency": draw_dependencies, "constituent": draw_constituents}
forms = pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
SVG = "{http://www.w3.org/2000/svg}"


def document(texts, *, tree=None, arcs=None, paragraphs=None, name="d"):
    """A document with one EDU per sentence."""
    sentences = tuple(tuple(text.split()) for text in texts)
    edus = tuple(Edu(place, 0, len(words)) for place, words in enumerate(sentences))
    return DiscourseDocument(name, sentences, edus, tree, paragraphs, arcs)


TREE = join_pair(join_pair(leaf(0), leaf(1), "NN", "joint-list"), leaf(2), "SN", "context")
PLAIN = document(["One is here .", "Two is there .", "Three ."], tree=TREE, paragraphs=(0, 2))


def texts(picture):
    """All texts of a picture, in the order of the file. Fails when it is not well-formed."""
    return [element.text or "" for element in ElementTree.fromstring(picture.encode()).iter(f"{SVG}text")]


def n_elements(picture, tag):
    return sum(1 for _ in ElementTree.fromstring(picture.encode()).iter(f"{SVG}{tag}"))


@forms
def test_every_edu_is_shown_in_order_with_its_number(draw):
    found = texts(draw(PLAIN))
    places = [found.index(text) for text in ("One is here .", "Two is there .", "Three .")]
    assert places == sorted(places)
    assert [found[place - 1] for place in places] == ["1", "2", "3"]
    assert {"joint-list", "context"} <= set(found)


def test_every_edu_but_the_root_has_an_arc_with_its_relation():
    picture = draw_dependencies(PLAIN)
    assert PLAIN.dependencies.heads == (2, 0, NO_HEAD)
    assert [text for text in texts(picture) if text in ("context", "joint-list", "root")] == [
        "context",
        "joint-list",
        "root",
    ]
    # A line and an arrow head per arc, and a line above the second paragraph.
    assert n_elements(picture, "path") == 2 * 2 + 1


def test_constituents_are_named_with_nuclearity():
    picture = draw_constituents(PLAIN)
    titles = [element.text for element in ElementTree.fromstring(picture.encode()).iter(f"{SVG}title")]
    assert titles == ["EDUs 1 to 2: joint-list, NN", "EDUs 1 to 3: context, SN"]
    assert [text for text in texts(picture) if text in "NS"].count("S") == 2  # each with its white outline


def test_a_binarized_list_is_drawn_as_the_list_it_is():
    nary = join([leaf(0), leaf(1), leaf(2)], "NNN", ("joint",) * 3)
    names = ["a", "b", "c"]
    assert draw_constituents(document(names, tree=nary)) == draw_constituents(document(names, tree=binarize(nary)))


def test_a_list_within_a_list_stays_one_where_the_arcs_say_so():
    nested = binarize(join([leaf(0), leaf(1), leaf(2)], "NNN", ("joint",) * 3))
    arcs = DependencyTree((NO_HEAD, 0, 1), ("root", "joint", "joint"))
    assert n_elements(draw_constituents(document(["a", "b", "c"], tree=nested)), "title") == 1
    assert n_elements(draw_constituents(document(["a", "b", "c"], tree=nested, arcs=arcs)), "title") == 2


@forms
def test_markup_and_forbidden_characters_do_not_break_the_file(draw):
    tree = join_pair(leaf(0), leaf(1), "NS", '<a&"b">')
    picture = draw(document(['<b> & "q" \' ]]>', "bell\x07 \ufffe end"], tree=tree, name="<id>&\x01"))
    found = texts(picture)
    assert {'<b> & "q" \' ]]>', "bell\ufffd \ufffd end", '<a&"b">', "<id>&\ufffd"} <= set(found)


@forms
def test_empty_sentences_have_separate_rows(draw):
    tree = join_pair(leaf(0), join_pair(leaf(1), leaf(2), "NS", "x"), "NS", "y")
    assert texts(draw(document(["a", "", "b"], tree=tree))).count("(empty)") == 1


@forms
def test_a_document_without_sentences_and_one_of_a_single_edu(draw):
    assert "0 sentences, 0 EDUs" in draw(document([], name="none"))
    assert "alone" in texts(draw(document(["alone"], tree=leaf(0))))


@forms
def test_trees_deeper_than_the_stack(draw):
    tree = deep_tree(n := 1500, "SN", "NS")
    assert len(texts(draw(document(["w"] * n, tree=tree)))) > 3 * n


def test_chinese_words_are_joined_and_wrapped_without_blanks():
    assert join_words(("我们", "用", "docmt", "翻译", "。")) == "我们用 docmt 翻译。"
    lines = wrap("字" * 100)
    assert "".join(lines) == "字" * 100
    assert [len(line) for line in lines] == [43, 43, 14]


@given(st.text(alphabet="abW .,字", max_size=400))
def test_wrapping_loses_only_the_blanks_at_line_ends(content):
    lines = wrap(content)
    assert "".join(lines).replace(" ", "") == content.replace(" ", "")
    # A space, or closing punctuation that must not begin a line, may exceed the width.
    assert all(text_width(line.rstrip(" .,"), TEXT_SIZE) <= TEXT_WIDTH + 15 for line in lines)


@settings(deadline=None)
@given(random_heads(max_size=25))
def test_arcs_of_different_heads_never_share_a_stretch_of_a_lane(heads):
    middles = [25.0 * place for place in range(len(heads))]
    lanes = assign_lanes(heads, middles)
    stretches = {}
    for edu, head in enumerate(heads):
        if head != NO_HEAD:
            stretches.setdefault(head, [middles[head] + OFFSET]).append(middles[edu] - OFFSET)
    for a, b in itertools.combinations(stretches, 2):
        if lanes[a] == lanes[b]:
            assert max(stretches[a]) < min(stretches[b]) or max(stretches[b]) < min(stretches[a])


def test_longer_arcs_run_on_outer_lanes():
    assert assign_lanes([NO_HEAD, 0, 1, 0], [0.0, 30.0, 60.0, 90.0]) == [1, 0, 0, 0]
    assert assign_lanes([NO_HEAD, 0, 1, 2], [0.0, 30.0, 60.0, 90.0]) == [0, 0, 0, 0]


def test_a_tree_given_only_as_arcs_is_drawn_even_where_they_cross():
    arcs = DependencyTree((NO_HEAD, 3, 0, 0), ("root", "a", "b", "c"))
    crossing = document(["a", "b", "c", "d"], arcs=arcs)
    assert n_elements(draw_dependencies(crossing), "path") == 6
    with pytest.raises(UserError, match="--form dependency"):
        draw_constituents(crossing)


def test_a_document_that_is_not_parsed_is_refused():
    with pytest.raises(UserError, match="parse it first"):
        draw_dependencies(document(["a", "b"]))


def test_constituents_begin_left_of_their_children():
    for room in LABEL_ROOMS:
        for place in place_constituents(TREE, room):
            assert all(place.x + LEVEL_WIDTH <= child.x for child in place.children)


@pytest.fixture
def two_documents(tmp_path):
    path = tmp_path / "two.discourse.jsonl"
    write_discourse(path, [PLAIN, document(["other"], tree=leaf(0), name="second")])
    return path


@pytest.mark.parametrize(
    ("options", "shown"),
    [([], "d"), (["--number", 2], "second"), (["--document", "second"], "second"), (["--form", "constituent"], "d")],
)
def test_command_draws_the_document_asked_for(two_documents, tmp_path, options, shown):
    run("draw", "--input", two_documents, "--out", tmp_path / "tree.svg", *options)
    assert texts((tmp_path / "tree.svg").read_text(encoding="utf-8"))[0] == shown


@pytest.mark.parametrize("options", [["--number", 3], ["--number", 0], ["--document", "third"]])
def test_command_names_what_the_file_holds_when_the_document_is_not_there(two_documents, tmp_path, options):
    with pytest.raises(UserError, match=r"there is no document .*it holds 2, the last of them 'second'"):
        run("draw", "--input", two_documents, "--out", tmp_path / "tree.svg", *options)
    assert not (tmp_path / "tree.svg").exists()
