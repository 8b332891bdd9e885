"""EDUs and trees over subwords: boundaries, cuts, and refused input."""

import json
import random

import numpy as np
import pytest

from docmt.checksums import checksum_path
from docmt.corpora.documents import DocumentIndex
from docmt.discourse.dependencies import DependencyTree
from docmt.discourse.discourse_documents import DiscourseDocument, Edu, edus_from_starts, write_discourse
from docmt.errors import UserError
from docmt.instances.building import build_instances, iterate_trees
from docmt.instances.settings import InstancesSettings
from docmt.instances.storage import load_instances
from docmt.instances.trees import align_document
from docmt.text.tokenizer import get_tokenizer, sentence_words
from docmt.text.vocabulary import Vocabulary


def document(sentences, starts, heads, name="d"):
    words = tuple(tuple(sentence.split()) for sentence in sentences)
    edus = edus_from_starts(starts, [len(sentence) for sentence in words])
    relations = tuple("root" if head < 0 else "elaboration" for head in heads)
    return DiscourseDocument(name, words, edus, arcs=DependencyTree(tuple(heads), relations))


@pytest.mark.parametrize(
    ("words", "starts", "subwords", "lengths"),
    [
        ("He left because it rained .", [2], "he le@@ ft be@@ cau@@ se it rain@@ ed .", [4, 8]),
        ("a b", [], "a b", [4]),
        ("", [], "", [2]),
        # Escapes, marks for blanks and a token that stands for nothing.
        ("Tom & I 10 % yes", [3], "tom &amp; I 10 ▁ % yes", [4, 5]),
        ("and / or", [1], "and @/@ or", [2, 3]),
        ("&amp", [], "&amp;@@ amp", [4]),
        # The discourse file has finer words: a boundary inside a token moves to its end.
        ("do n't go", [1], "don't go", [2, 2]),
        # It has coarser ones.
        ("it's here", [1], "it &apos;s here", [3, 2]),
        # Three EDUs inside one token: those in the middle have no subword.
        ("a b c d", [1, 2], "abc d", [2, 0, 2]),
    ],
)
def test_boundaries_fall_between_tokens(words, starts, subwords, lengths):
    heads = [-1] + [0] * len(starts)
    placed = align_document(document([words], [starts], heads), [subwords.split()])
    assert placed.edu_lengths.tolist() == lengths
    assert placed.edu_lengths.sum() == len(subwords.split()) + 2
    assert placed.n_inexact == 0


@pytest.mark.parametrize("lang", ["en", "de", "fr", "cs"])
def test_normalized_text_has_the_same_boundaries(lang):
    """Compared with the separately normalized text before a boundary."""
    tokenizer, generator = get_tokenizer(lang, normalize=True), random.Random(1)
    parts = [*"%…—–„“‚‘’»«›‹´`½№²♪?!", "He", "yes", "5", "10", "café", "ﬁne", "“Yes”", "l’eau"]
    for _ in range(300):
        line = " ".join(generator.choices(parts, k=generator.randint(2, 10)))
        words = sentence_words(line, lang)
        start = generator.randint(1, len(words) - 1)
        tree = document([" ".join(words)], [[start]], [-1, 0])
        placed = align_document(tree, [tokenizer.tokenize(line)])
        beginning, end = "".join(words[:start]), 0
        while "".join(line[:end].split()) != beginning:
            end += 1
        first = tokenizer.tokenize(line)[: int(placed.edu_lengths[0]) - 1]
        shorter, text, before = (
            "".join(text.split())
            for text in (*map(tokenizer.detokenize, (first[:-1], first)), tokenizer.normalize(line[:end]))
        )
        # A boundary inside a token moves to its end.
        assert text.startswith(before)
        assert len(shorter) < len(before)
        assert placed.n_inexact == 0


@pytest.mark.parametrize("line", ["…", "—", "„…“", "’", "»", "…!", "I…", "‚‘", "«…»", "´´", "“ ” …", "–"])
def test_sentence_of_marks_is_normalized(line):
    lines = ["Where is she?", line, "Gone."]
    trees = document([" ".join(sentence_words(each, "de")) for each in lines], [[], [], []], [-1, 0, 0])
    placed = align_document(trees, [get_tokenizer("de", normalize=True).tokenize(each) for each in lines])
    assert placed.edu_counts.tolist() == [1, 1, 1]
    assert placed.n_inexact == 0


def test_emptied_sentence_is_counted():
    subwords = [["the", "dog", "sees"], [], ["it", "runs"]]
    placed = align_document(document(["the dog sees", "♪ ♪", "it runs"], [[], [1], []], [-1, 0, 0, 0]), subwords)
    assert placed.edu_lengths.tolist() == [5, 1, 1, 4]
    assert placed.n_inexact == 1


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ([["quite", "another", "text"]], "the trees belong to a different document"),
        ([["a", "b"], ["c"]], "has 1 sentences, but the text has 2"),
    ],
)
def test_trees_of_another_document_are_refused(sentences, message):
    with pytest.raises(UserError, match=message):
        align_document(document(["12345 6789 0"], [[1]], [-1, 0]), sentences)


TEXT, INDEX = [list("abc"), list("def"), list("ghi"), list("abc")], DocumentIndex(("d", "e"), (3, 1))


def build(tmp_path, *, max_tokens=8, subset=None):
    """Documents with sentence lengths 3, 3, 3 and 3. In the first one, sentence 2 has EDUs with 1 + 2 words."""
    first = document(["a b c", "d e f", "g h i"], [[], [1], []], [2, 0, -1, 0])
    second = document(["a b c"], [[2]], [-1, 0], name="e")
    path = tmp_path / "train.discourse.jsonl"
    write_discourse(path, [first, second])
    settings = InstancesSettings(max_tokens=max_tokens, subset=subset)
    trees = iterate_trees([path], TEXT, INDEX)
    build_instances(TEXT, TEXT, INDEX, Vocabulary.from_sentences(TEXT), settings, out=tmp_path / "built", trees=trees)
    return load_instances(tmp_path / "built")


def test_trees_of_a_whole_document(tmp_path):
    trees = build(tmp_path, max_tokens=512).trees
    assert trees.edu_offsets.tolist() == [0, 5, 7, 10, 15, 18, 20]
    assert trees.sentence_edus.tolist() == [0, 1, 3, 4, 6]
    assert trees.edu_heads.tolist() == [2, 0, -1, 0, -1, 4]
    assert trees.sentence_heads.tolist() == [1, -1, 0, -1]


def test_crossing_edge_is_dropped_and_counted(tmp_path):
    built = build(tmp_path, max_tokens=10)
    assert built.instances.tolist() == [0, 2, 3, 4]
    assert built.trees.edu_heads.tolist() == [2, 0, -1, -1, -1, 4]
    assert built.trees.sentence_heads.tolist() == [1, -1, -1, -1]
    counts = built.manifest["counts"]
    assert (counts["edus"], counts["edges_cut"], counts["sentence_edges_cut"]) == (6, 1, 1)


def test_a_subset_keeps_its_trees(tmp_path):
    whole, part = build(tmp_path, max_tokens=10), build(tmp_path, max_tokens=10, subset=2)
    for number in range(len(part)):
        tokens = np.concatenate(part.sentences(number, "src"))
        candidates = [i for i in range(len(whole)) if np.array_equal(np.concatenate(whole.sentences(i, "src")), tokens)]
        assert _described(part, number) in [_described(whole, i) for i in candidates]


def _described(instance_set, number):
    trees = instance_set.trees
    first, last = instance_set.instances[number], instance_set.instances[number + 1]
    start, end = trees.sentence_edus[first], trees.sentence_edus[last]
    heads = trees.edu_heads[start:end]
    return (
        np.diff(trees.edu_offsets[start : end + 1]).tolist(),
        np.where(heads < 0, -1, heads - start).tolist(),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:1], "document 2 must be 'e', not none"),
        (lambda lines: lines[::-1], "document 1 must be 'd', not 'e'"),
        (lambda lines: [*lines, lines[0].replace('"d"', '"x"', 1)], "follows after the 2 documents"),
        (lambda lines: [lines[0].replace('"head": 2', '"head": 1'), lines[1]], "cycle"),
        (lambda lines: [lines[0].replace('"head": 2', '"head": -1'), lines[1]], "both roots"),
        (lambda lines: [_edit(lines[0]), lines[1]], "without gap or overlap"),
    ],
)
def test_misfit_file_is_one_line(tmp_path, change, message):
    build(tmp_path)
    path = tmp_path / "train.discourse.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("".join(line + "\n" for line in change(lines)), encoding="utf-8")
    checksum_path(path).unlink()
    with pytest.raises(UserError, match=message) as error:
        list(iterate_trees([path], TEXT, INDEX))
    assert "\n" not in str(error.value)


def _edit(line):
    value = json.loads(line)
    value["edus"][1]["end"] = 2
    return json.dumps(value)


def test_empty_sentence_has_one_edu():
    edus, arcs = (Edu(0, 0, 0), Edu(1, 0, 1)), DependencyTree((1, -1), ("elaboration", "root"))
    placed = align_document(DiscourseDocument("d", ((), ("a",)), edus, arcs=arcs), [[], ["a"]])
    assert placed.edu_lengths.tolist() == [2, 3]
    assert placed.sentence_heads.tolist() == [1, -1]
