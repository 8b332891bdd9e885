"""Tree statistics: counted by hand, compared with a plain count, and on documents that lack a kind of tree."""

import csv
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_fixtures import deep_tree, random_heads, run

from docmt.discourse.constituents import binarize, join, join_pair, leaf
from docmt.discourse.dependencies import NO_HEAD, DependencyTree, depths, merge_to_sentences
from docmt.discourse.discourse_documents import DiscourseDocument, Edu, edus_from_starts, write_discourse
from docmt.discourse.statistics import gather_statistics
from docmt.discourse.treebanks.readers import read_gum
from docmt.errors import UserError


def document(lengths, starts, *, name="d", tree=None, arcs=None):
    words = tuple(tuple(f"w{i}" for i in range(length)) for length in lengths)
    return DiscourseDocument(name, words, edus_from_starts(starts, lengths), tree, None, arcs)


# Sentences: EDUs 0 1 | 2 | 3 4. EDUs 1 to 3 are one constituent, so the first and the last sentence are none.
MIDDLE = join_pair(leaf(1), join_pair(leaf(2), leaf(3), "NS", "cause"), "SN", "list")
CROSSING = document(
    [5, 0, 4],
    [[2], [], [1]],
    name="crossing",
    tree=join_pair(leaf(0), join_pair(MIDDLE, leaf(4), "NS", "purpose"), "NS", "context"),
)
WHOLE = document(
    [4, 2], [[1], []], name="whole", tree=join_pair(join_pair(leaf(0), leaf(1), "NN", "list"), leaf(2), "SN", "context")
)
ARCS = document([3, 2], [[], []], name="arcs", arcs=DependencyTree((NO_HEAD, 0), ("root", "cause")))


def test_statistics_of_a_document_counted_by_hand():
    row = gather_statistics([CROSSING]).row()
    # Heads: 0 is the root, 2 -> 0, 1 -> 2, 3 -> 2, 4 -> 2.
    assert CROSSING.dependencies.heads == (NO_HEAD, 2, 0, 2, 2)
    assert row == {
        "documents": 1,
        "documents_without_tree": 0,
        "sentences": 3,
        "words": 9,
        "edus": 5,
        "words_per_edu": 1.8,
        "edus_per_sentence": 1.67,
        "edus_per_document": 5.0,
        "max_edus_per_document": 5,
        "one_edu_sentences_percent": 33.33,
        "dependency_depth": 2.0,
        "max_dependency_depth": 2,
        "constituent_depth": 4.0,
        "max_constituent_depth": 4,
        "whole_sentences_percent": 33.33,
        "whole_several_edu_sentences_percent": 0.0,
        "several_head_sentences_percent": 66.67,
        "arcs_between_sentences_percent": 100.0,
        "distance_between_sentences": 1.0,
        "chain_percent": 100.0,
    }


def test_relations_are_counted_without_the_root():
    rows = gather_statistics([CROSSING, WHOLE]).relation_rows()
    assert rows == [
        {"relation": "context", "arcs": 2, "percent": 33.33, "between_sentences_percent": 100.0},
        {"relation": "list", "arcs": 2, "percent": 33.33, "between_sentences_percent": 50.0},
        {"relation": "cause", "arcs": 1, "percent": 16.67, "between_sentences_percent": 100.0},
        {"relation": "purpose", "arcs": 1, "percent": 16.67, "between_sentences_percent": 100.0},
    ]


def test_means_are_over_documents_and_maxima_over_all():
    row = gather_statistics([CROSSING, WHOLE]).row()
    assert (row["edus_per_document"], row["max_edus_per_document"]) == (4.0, 5)
    assert (row["dependency_depth"], row["max_dependency_depth"]) == (2.0, 2)
    assert (row["constituent_depth"], row["max_constituent_depth"]) == (3.0, 4)
    assert (row["whole_sentences_percent"], row["whole_several_edu_sentences_percent"]) == (60.0, 33.33)


def test_a_file_of_arcs_has_no_constituent_figures():
    row = gather_statistics([ARCS]).row()
    assert row["constituent_depth"] is row["max_constituent_depth"] is row["whole_sentences_percent"] is None
    assert (row["dependency_depth"], row["chain_percent"], row["documents_without_tree"]) == (1.0, 100.0, 0)


def test_constituent_figures_need_constituents():
    assert gather_statistics([WHOLE, ARCS]).row()["whole_sentences_percent"] == 100.0


def test_documents_without_tree_are_counted():
    row = gather_statistics([document([3], [[1]]), WHOLE]).row()
    assert (row["documents"], row["documents_without_tree"], row["edus"]) == (2, 1, 5)
    assert row["dependency_depth"] == 2.0


def test_nothing_to_count_gives_no_figures():
    row = gather_statistics([]).row()
    assert row["documents"] == 0
    assert row["edus_per_sentence"] is row["max_dependency_depth"] is None
    assert gather_statistics([document([], [])]).row()["sentences"] == 0
    assert gather_statistics([document([3], [[]], tree=leaf(0))]).relation_rows() == []


def test_binary_and_n_ary_figures_agree():
    nary = join([leaf(0), leaf(1), leaf(2), leaf(3)], "NNNS", ("list", "list", "list", "cause"))
    rows = [gather_statistics([document([4, 1], [[1, 2], []], tree=t)]).row() for t in (nary, binarize(nary))]
    assert rows[0] == rows[1]
    assert rows[0]["whole_sentences_percent"] == 100.0


def test_a_tree_deeper_than_the_stack_is_counted():
    n = 5000
    row = gather_statistics([document([1] * n, [[]] * n, tree=deep_tree(n, "NS"))]).row()
    assert (row["max_constituent_depth"], row["max_dependency_depth"]) == (n - 1, n - 1)
    assert (row["chain_percent"], row["distance_between_sentences"]) == (100.0, 1.0)


@st.composite
def random_documents(draw):
    heads = draw(random_heads(max_size=20))
    ends = sorted(draw(st.sets(st.integers(1, len(heads)))) | {len(heads)})
    counts = [end - start for start, end in itertools.pairwise([0, *ends])]
    relations = tuple("root" if head == NO_HEAD else "r" for head in heads)
    starts = [list(range(1, count)) for count in counts]
    return document(counts, starts, arcs=DependencyTree(tuple(heads), relations))


@settings(deadline=None, max_examples=60)
@given(random_documents())
def test_statistics_equal_a_plain_count(example):
    heads, sentence = example.dependencies.heads, [edu.sentence for edu in example.edus]
    n_external = [0] * len(example.sentences)
    distances = []
    for edu, head in enumerate(heads):
        n_external[sentence[edu]] += head == NO_HEAD or sentence[head] != sentence[edu]
        if head != NO_HEAD and sentence[head] != sentence[edu]:
            distances.append(abs(sentence[head] - sentence[edu]))
    merged = merge_to_sentences(heads, sentence, len(example.sentences))
    chain = [head == position - 1 for position, head in enumerate(merged) if head != NO_HEAD]
    row = gather_statistics([example]).row()
    share = round(100 * sum(n > 1 for n in n_external) / len(n_external), 2)
    assert row["several_head_sentences_percent"] == share
    assert row["arcs_between_sentences_percent"] == (
        round(100 * len(distances) / (len(heads) - 1), 2) if len(heads) > 1 else None
    )
    assert row["distance_between_sentences"] == (round(sum(distances) / len(distances), 2) if distances else None)
    assert row["chain_percent"] == (round(100 * sum(chain) / len(chain), 2) if chain else None)
    assert row["max_dependency_depth"] == depths(heads).max()


def test_command_writes_a_row_per_file(tmp_path):
    write_discourse(tmp_path / "a.discourse.jsonl", [CROSSING, WHOLE])
    write_discourse(tmp_path / "b.discourse.jsonl", [ARCS])
    files = [f"{name}={tmp_path / name}.discourse.jsonl" for name in "ab"]
    run("count-trees", "--files", *files, "--out", tmp_path / "out.csv", "--relations", tmp_path / "relations.csv")
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert [(row["name"], row["edus"], row["whole_sentences_percent"]) for row in rows] == [
        ("a", "8", "60.0"),
        ("b", "2", ""),
    ]
    relations = list(csv.DictReader((tmp_path / "relations.csv").open()))
    assert [(row["name"], row["relation"], row["arcs"]) for row in relations][-1] == ("b", "cause", "1")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["x.jsonl"], "expected NAME=FILE"),
        (["=x"], "expected NAME=FILE"),
        (["a=no.jsonl"], "no such file"),
        (["a=x", "a=x"], "duplicate file"),
    ],
)
def test_command_refuses_bad_files(tmp_path, monkeypatch, files, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        run("count-trees", "--files", *files, "--out", "out.csv")
    assert not Path("out.csv").exists()


def test_files_of_one_name_are_one_row(tmp_path):
    write_discourse(tmp_path / "whole.jsonl", [CROSSING, WHOLE, ARCS])
    write_discourse(tmp_path / "1.jsonl", [CROSSING])
    write_discourse(tmp_path / "2.jsonl", [WHOLE, ARCS])
    run("count-trees", "--files", f"a={tmp_path / 'whole.jsonl'}", "--out", tmp_path / "whole.csv")
    shards = [f"a={tmp_path / name}.jsonl" for name in "12"]
    run("count-trees", "--files", *shards, "--out", tmp_path / "shards.csv")
    assert (tmp_path / "shards.csv").read_text() == (tmp_path / "whole.csv").read_text()


def test_no_trees_give_an_empty_table(tmp_path):
    plain = DiscourseDocument("plain", (("a",),), (Edu(0, 0, 1),))
    write_discourse(tmp_path / "a.jsonl", [plain])
    out = tmp_path / "out.csv"
    run("count-trees", "--files", f"a={tmp_path / 'a.jsonl'}", "--out", out, "--relations", tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == "name,relation,arcs,percent,between_sentences_percent\n"


@pytest.mark.slow
@pytest.mark.skipif("DOCMT_MIRROR" not in os.environ, reason="DOCMT_MIRROR is not set")
def test_real_gum_figures():
    test = read_gum(Path(os.environ["DOCMT_MIRROR"]) / "gum").splits["test"]
    row = gather_statistics(test).row()
    assert (row["documents"], row["sentences"], row["edus"]) == (30, 1464, 3518)
    assert row["whole_sentences_percent"] == pytest.approx(94.8, abs=0.3)
    assert row["whole_several_edu_sentences_percent"] == pytest.approx(91.6, abs=0.3)
