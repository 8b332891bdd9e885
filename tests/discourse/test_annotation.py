"""From text to trees: all documents once and in order, for any shards and batches. Bad files lead to one line."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from parsing_fixtures import save_tiny_parser, save_tiny_segmenter

from docmt.cli.main import main
from docmt.corpora.documents import read_index
from docmt.discourse import annotation
from docmt.discourse.annotation import (
    Annotator,
    PlainText,
    blank_line_texts,
    chain_sentences,
    read_texts,
    rename,
    tokenize_batches,
)
from docmt.discourse.dependencies import DependencyTree, merge_to_sentences
from docmt.discourse.discourse_documents import DiscourseDocument, Edu, read_discourse, write_discourse
from docmt.discourse.parsing.parser import load_parser
from docmt.discourse.segmentation.segmenter import SegmenterOutput
from docmt.errors import UserError

LENGTHS = (2, 1, 30, 3, 4, 1, 1, 5)
SENTENCES = ["He left, because it rained.", "", 'Don\'t ask me & my "friends"!', "One."]


class EveryThirdWord:
    """A stand-in for a segmenter."""

    def encode(self, sentences):
        empty = torch.empty(0, 0)
        return [SegmenterOutput(list(range(3, len(words), 3)), empty, empty) for words in sentences]


@pytest.fixture
def files(tmp_path):
    """A text with eight documents and its index."""
    lines = [SENTENCES[i % len(SENTENCES)] for i in range(sum(LENGTHS))]
    (tmp_path / "x.en").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    rows = [f"c.train/d{i}\t{n}" for i, n in enumerate(LENGTHS)]
    (tmp_path / "x.documents.tsv").write_text("\n".join(["document\tn_sentences", *rows]) + "\n", encoding="utf-8")
    return tmp_path / "x.en", tmp_path / "x.documents.tsv"


def annotated(texts):
    annotator = Annotator(lambda: (EveryThirdWord(), load_parser("chain")))
    return [document for batch in tokenize_batches(texts, lang="en") for document in annotator.annotate(batch)]


def test_every_sentence_keeps_its_place(files):
    documents = annotated(read_texts(*files))
    assert [len(document.sentences) for document in documents] == list(LENGTHS)
    assert documents[0].sentences[0] == ("He", "left", ",", "because", "it", "rained", ".")
    assert documents[0].sentences[1] == ()
    assert documents[0].edus[-1].end == 0
    assert {"&", '"'} <= set(documents[2].sentences[3]), "neither marks nor escapes"
    for document in documents:
        assert document.dependencies.heads == tuple(range(-1, len(document.edus) - 1))


def test_chained_sentences_keep_the_arcs_inside_sentences():
    words = (("a", "b", "c"), ("d",), (), ("e", "f"))
    edus = (Edu(0, 0, 1), Edu(0, 1, 2), Edu(0, 2, 3), Edu(1, 0, 1), Edu(2, 0, 0), Edu(3, 0, 1), Edu(3, 1, 2))
    # EDU 3 is the root. Both EDUs of the last sentence depend on other sentences.
    tree = DependencyTree((1, 3, 1, -1, 1, 3, 0), ("x", "y", "z", "root", "v", "w", "u"))
    chained = chain_sentences(DiscourseDocument("d", words, edus, arcs=tree))
    assert chained.arcs.heads == (1, -1, 1, 1, 3, 4, 5)
    assert chained.arcs.relations == ("x", "root", "z", *["elaboration"] * 4)
    sentences = merge_to_sentences(chained.arcs.heads, [edu.sentence for edu in edus], 4)
    assert sentences == (-1, 0, 1, 2)


@pytest.mark.parametrize("seed", range(20))
def test_chained_sentences_are_a_tree_of_any_tree(seed):
    chance = random.Random(seed)
    counts = [chance.randint(1, 4) for _ in range(chance.randint(1, 6))]
    edus = tuple(Edu(sentence, position, position + 1) for sentence, n in enumerate(counts) for position in range(n))
    words = tuple(("w",) * n for n in counts)
    order = chance.sample(range(len(edus)), len(edus))
    heads = [-1] * len(edus)
    for position, edu in enumerate(order[1:], start=1):
        heads[edu] = chance.choice(order[:position])
    tree = DependencyTree(tuple(heads), tuple("root" if head < 0 else f"r{head}" for head in heads))
    chained = chain_sentences(DiscourseDocument("d", words, edus, arcs=tree))  # which checks that it is a tree
    sentence_of = [edu.sentence for edu in edus]
    assert merge_to_sentences(chained.arcs.heads, sentence_of, len(counts)) == tuple(range(-1, len(counts) - 1))
    for edu, head in enumerate(heads):
        if head >= 0 and sentence_of[head] == sentence_of[edu]:
            assert (chained.arcs.heads[edu], chained.arcs.relations[edu]) == (head, f"r{head}")
        elif chained.arcs.heads[edu] >= 0:
            assert chained.arcs.relations[edu] == (
                tree.relations[edu] if chained.arcs.heads[edu] == head else "elaboration"
            )


def test_a_document_without_sentences_has_no_chain():
    empty = DiscourseDocument("d", (), (), arcs=DependencyTree((), ()))
    assert chain_sentences(empty).arcs == DependencyTree((), ())


def test_text_with_blank_lines_becomes_documents(tmp_path):
    path = tmp_path / "t.en"
    path.write_bytes("\n\nA b.\r\nC\u2028d.\r\n\r\n \t\nE.".encode())
    assert list(blank_line_texts(path)) == [PlainText("1", ["A b.", "C\u2028d."]), PlainText("2", ["E."])]


def test_gold_trees_take_the_ids_of_the_text(files, tmp_path):
    documents = annotated(PlainText(f"d{i}", ["x y"]) for i in range(len(LENGTHS)))
    gold = tmp_path / "gold.jsonl"
    write_discourse(gold, documents)
    index, out = read_index(files[1]), tmp_path / "out.jsonl"
    assert not main(
        ["discourse", "merge-trees", "--inputs", str(gold), "--documents", str(files[1]), "--out", str(out)]
    )
    assert [document.id for document in read_discourse(out)] == list(index.ids)
    write_discourse(gold, documents[::-1])
    with pytest.raises(UserError, match=r"expected the trees of 'c\.train/d0' next, found 'd7'"):
        list(rename([gold], index))
    write_discourse(gold, documents[:-1])
    with pytest.raises(UserError, match=r"'c\.train/d7' next, found none"):
        list(rename([gold], index))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Options for a segmenter and a parser that reads its states."""
    folder = tmp_path_factory.mktemp("models")
    segmenter = save_tiny_segmenter(folder / "segmenter.pt")
    return ["--segmenter", str(segmenter), "--parser", str(save_tiny_parser(folder / "parser.pt", segmenter))]


@pytest.mark.slow
@pytest.mark.parametrize(("jobs", "sentences"), [(2, "chain"), (4, "parser")])
def test_several_processes_write_the_bytes_of_one(files, models, tmp_path, monkeypatch, capfd, jobs, sentences):
    monkeypatch.setattr(annotation, "BATCH_WORDS", 20)
    command = ["discourse", "annotate", *models, "--text", str(files[0]), "--documents", str(files[1])]
    command += ["--lang", "en", "--sentences", sentences]
    for n in (1, jobs):
        assert not main([*command, "--out", str(tmp_path / str(n)), "--jobs", str(n)])
    assert (tmp_path / str(jobs)).read_bytes() == (tmp_path / "1").read_bytes()
    assert [document.id for document in read_discourse(tmp_path / "1")] == list(read_index(files[1]).ids)
    counts = [line.partition(" INFO ")[2] for line in capfd.readouterr().err.splitlines()]
    assert counts[0] == counts[1]
    assert counts[0].startswith(f"documents {len(LENGTHS)}, edus ")


@pytest.mark.slow
def test_mistakes_in_processes_are_one_line(files, models, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(annotation, "BATCH_WORDS", 20)
    command = f"discourse annotate --text {files[0]} --documents {files[1]} --lang en --out {tmp_path}/out".split()
    for parser, message in (
        (models[1], "segmenter.pt: not a parser"),
        (f"file:{tmp_path}", f"--jobs 2: the trees in file:{tmp_path} are read in file order, by one process"),
    ):
        assert main([*command, "--jobs", "2", *models[:2], "--parser", parser]) == 2
        error = capfd.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_all_processes(models, tmp_path, number):
    """Including processes that work on a batch. SIGTERM leaves no unfinished file."""
    (tmp_path / "in.en").write_text(("We went home because rain fell .\n" * 20 + "\n") * 5_000, encoding="utf-8")
    command = ["discourse", "annotate", *models, "--text", "in.en", "--lang", "en", "--out", "out/o", "--jobs", "2"]
    with subprocess.Popen([sys.executable, "-m", "docmt", *command], cwd=tmp_path, stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 240
        while not any(path.stat().st_size for path in tmp_path.glob("out/.o.*/o")) and time.monotonic() < end:
            time.sleep(0.05)
        assert process.poll() is None
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
        assert len(children) >= 2
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    if number == signal.SIGTERM:
        assert process.returncode == 128 + number
        assert b"Traceback" not in errors
        assert [path.name for path in tmp_path.iterdir()] == ["in.en"]
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lang", "en"], "docmt discourse annotate: pass --text"),
        (["--documents", "d", "--lang", "en"], "docmt discourse annotate: pass --text"),
        (["--suite", "s", "--documents", "d", "--lang", "en"], "docmt discourse annotate: pass --text"),
        (["--text", "t", "--documents", "d", "--suite", "s", "--lang", "en"], "docmt discourse annotate: pass --text"),
        (
            ["--text", "t", "--lang", "en", "--n-shards", "2"],
            "only a text with --documents can be divided",
        ),
        (
            ["--suite", "s", "--lang", "en", "--shard", "3", "--n-shards", "2"],
            "--shard 3 --n-shards 2: the shard",
        ),
        (["--suite", "s", "--lang", "en", "--shard", "1/2"], 'Invalid value for --shard: unable to convert "1/2"'),
        (["--suite", "s", "--lang", "en"], "no such file"),
    ],
)
def test_mistakes_on_the_command_line_are_one_line(options, message, tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    command = f"discourse annotate --segmenter {tmp_path}/none.pt --parser chain --out {out}".split()
    assert main([*command, *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()
