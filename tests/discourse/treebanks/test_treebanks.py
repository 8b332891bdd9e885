"""GUM, GCDT and RST-DT, as hand-made miniatures. If DOCMT_MIRROR has the real treebanks, they are tested as well."""

import json
import os
import tarfile
from pathlib import Path

import pytest
from miniatures import DIS, RS4, conllu, gum_archives, splits_md, write_archive

from docmt.cli.main import main
from docmt.discourse.discourse_documents import Edu, read_discourse
from docmt.discourse.treebanks.brackets import parse_brackets
from docmt.discourse.treebanks.readers import read_gcdt, read_gum, read_rst_dt
from docmt.discourse.treebanks.rs3 import parse_rs3
from docmt.discourse.treebanks.treebank import align_edus, align_tree
from docmt.errors import UserError

MIRROR = os.environ.get("DOCMT_MIRROR")
mirror = pytest.mark.skipif(not MIRROR, reason="DOCMT_MIRROR is not set")
WORDS = (("We", "left", "because", "it", "rained", "."), ("Sad", "!"))
EDUS = (Edu(0, 0, 2), Edu(0, 2, 6), Edu(1, 0, 2))


def test_gum_archives_are_read(tmp_path, capsys):
    folder = gum_archives(tmp_path / "gum")
    before = sorted(folder.iterdir())
    assert (
        main(["discourse", "read-treebank", "--format", "gum", "--files", str(folder), "--out", str(tmp_path / "o")])
        == 0
    )
    assert sorted(folder.iterdir()) == before
    (document,) = read_discourse(tmp_path / "o/train.discourse.jsonl")
    assert (document.id, document.sentences, document.edus) == ("GUM_news_a", WORDS, EDUS)
    assert document.paragraphs == (0, 1)
    assert document.dependencies.heads == (-1, 0, 0)
    syntax = json.loads((tmp_path / "o/train.syntax.jsonl").read_text(encoding="utf-8"))
    assert syntax["document"] == "GUM_news_a"
    assert syntax["sentences"][1] == {"pos": ["TAG", "TAG"], "heads": [-1, 0], "relations": ["dep", "dep"]}
    counts = json.loads((tmp_path / "o/counts.json").read_text(encoding="utf-8"))
    assert counts["splits"]["dev"] == {"documents": 1, "paragraphs": 2, "sentences": 2, "tokens": 8, "edus": 3}
    assert sorted(name for names in counts["left_out"].values() for name in names) == [
        "GENTLE_e",
        "GUM_bio_gone",
        "GUM_news_unlisted",
        "GUM_reddit_b",
    ]


def test_gum_from_plain_folders_is_the_same(tmp_path):
    archives = gum_archives(tmp_path / "a")
    plain = tmp_path / "b"
    for path in archives.glob("*.tar.gz"):
        with tarfile.open(path) as archive:
            # The first releases of Python 3.11 have no filters.
            archive.extractall(plain, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (plain / "splits.md").write_bytes((archives / "splits.md").read_bytes())
    expected = read_gum(archives)
    assert read_gum(plain) == expected
    for path in archives.glob("*.tar.gz"):
        path.rename(path.with_name(path.name.replace(".tar.gz", ".tgz")))
    assert read_gum(archives) == expected


def test_masked_documents_are_left_out(tmp_path):
    masked = "\n".join("\t".join("___" if i == 1 else part for i, part in enumerate(line.split("\t")))
                       for line in conllu().split("\n"))  # fmt: skip
    treebank = read_gum(gum_archives(tmp_path, conllu=masked))
    assert treebank.splits["train"] == []
    assert treebank.left_out["its words are masked by underscores"] == ["GUM_news_a", "GUM_news_c", "GUM_news_d"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dis": DIS.replace("We left", "We went")}, r"lisp_binary\.tar\.gz:.*GUM_news_a\.dis: EDU 1 is 'We went'"),
        ({"dis": DIS.replace("causal-cause", "causal-cuase")}, r"GUM_news_a\.dis: EDUs 2 to 2: .*'causal-cause'"),
        ({"dis": "( Root (leaf 1) (text _!We left_!) )"}, r"a tree over 1 EDUs, but the CoNLL-U file has 3"),
        ({"dis": DIS[:-2]}, "never closed"),
        ({"conllu": conllu("We left *because")}, "GUM_news_a: sentence 1 must begin with an EDU"),
    ],
)
def test_files_that_do_not_fit_are_named(tmp_path, changes, message):
    with pytest.raises(UserError, match=message):
        read_gum(gum_archives(tmp_path, **changes))


def test_missing_or_broken_files_are_named(tmp_path, capsys):
    folder = gum_archives(tmp_path / "gum")
    (folder / "lisp_binary.tar.gz").write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"lisp_binary\.tar\.gz: cannot be read"):
        read_gum(folder)
    (folder / "lisp_binary.tar.gz").unlink()
    with pytest.raises(UserError, match=r"no \.dis files: put lisp_binary\.tar\.gz"):
        read_gum(folder)
    (folder / "splits.md").write_text(splits_md(train=["GUM_news_a"], dev=[]), encoding="utf-8")
    assert (
        main(["discourse", "read-treebank", "--format", "gum", "--files", str(folder), "--out", str(tmp_path / "o")])
        == 2
    )
    assert "no documents under the heading '## dev'" in capsys.readouterr().err
    write_archive(folder / "dep_conllu.tar.gz", {"a/x.conllu": conllu(), "b/x.conllu": conllu()})
    (folder / "splits.md").write_text(splits_md(train="x", dev="x", test="x"), encoding="utf-8")
    with pytest.raises(UserError, match="is the same document"):
        read_gum(folder)


# GCDT


def gcdt(folder, words="我们 走 了 因为 下雨 。\nR & D\n"):
    dis = DIS.replace("We left", "我们 走 了").replace("because it rained .", "因为 下雨 。")
    for split, name in (("train", "x"), ("dev", "y"), ("test", "z")):
        for kind, suffix, text in (("dis", "dis", dis.replace("Sad !", "R &amp; D")), ("tokenized", "txt", words)):
            path = folder / kind / split / f"{name}.{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return folder


def test_gcdt_words_come_from_the_tokenized_files(tmp_path):
    treebank = read_gcdt(gcdt(tmp_path))
    document = treebank.splits["dev"][0]
    assert document.id == "y"
    assert document.sentences == (("我们", "走", "了", "因为", "下雨", "。"), ("R", "&", "D"))
    assert document.edus == (Edu(0, 0, 3), Edu(0, 3, 6), Edu(1, 0, 3))
    assert treebank.counts()["splits"]["test"]["paragraphs"] is None


def test_gcdt_names_files_that_do_not_fit(tmp_path):
    with pytest.raises(UserError, match=r"x\.dis: EDU 3 .* does not match the document text|y\.dis|EDU 2"):
        read_gcdt(gcdt(tmp_path, words="我们 走 了 因为 下雪 。\nR & D\n"))
    (gcdt(tmp_path) / "tokenized/train/x.txt").unlink()
    with pytest.raises(UserError, match="document x needs both files"):
        read_gcdt(tmp_path)


# .rs3 and .rs4 of any language


def rs3_folder(folder, names, suffix=".rs3", rs4=RS4):
    for name in names:
        path = folder / f"{name}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rs4, encoding="utf-8")
    return folder


def run_rs3(folder, *more):
    return main(
        ["discourse", "read-treebank", "--format", "rs3", "--files", str(folder), "--out", f"{folder}-out", *more]
    )


@pytest.mark.parametrize("suffix", [".rs3", ".rs4"])
def test_rs3_treebank_has_forests(tmp_path, suffix, capsys):
    forest = RS4.replace(' parent="4" relname="evaluation-comment"', "").replace("because it rained .", "„Es!“")
    folder = rs3_folder(tmp_path / "rs3", ["train/a", "dev/b", "test/c", "old/d"], suffix, forest)
    assert run_rs3(folder, "--lang", "de") == 0
    (document,) = read_discourse(tmp_path / "rs3-out/train.discourse.jsonl")
    assert document.sentences == (("We", "left", "„", "Es", "!", "“"), ("Sad", "!"))
    assert document.edus == (Edu(0, 0, 2), Edu(0, 2, 6), Edu(1, 0, 2))
    assert document.dependencies.heads == (-1, 0, 0)
    assert document.dependencies.relations == ("root", "causal-cause", "joint")
    assert document.paragraphs is None
    counts = json.loads((tmp_path / "rs3-out/counts.json").read_text(encoding="utf-8"))
    assert counts["notes"]["documents with several trees, which were joined"] == 3
    assert counts["left_out"] == {"in none of the folders train, dev and test": ["d"]}
    assert "rs3: 3 documents with several trees, which were joined" in capsys.readouterr().err


def test_rs3_files_without_folders_for_splits_are_divided(tmp_path):
    assert run_rs3(rs3_folder(tmp_path / "rs3", [f"all/{n:02}" for n in range(1, 21)]), "--lang", "en") == 0
    ids = {
        split: [document.id for document in read_discourse(tmp_path / f"rs3-out/{split}.discourse.jsonl")]
        for split in ("train", "dev", "test")
    }
    assert ids["dev"] == ["09", "19"]
    assert ids["test"] == ["10", "20"]
    assert len(ids["train"]) == 16


@pytest.mark.parametrize(
    ("names", "more", "message"),
    [
        (
            ["all/a"],
            ["--lang", "en"],
            "1 files are too few to split",
        ),
        (["train/a", "dev/b", "test/c"], ["--lang", "xx"], "unknown language 'xx'"),
        (["train/a", "dev/b", "test/c"], [], "pass --lang with --format rs3"),
        ([], ["--lang", "en"], "no .rs3 or .rs4 files"),
    ],
)
def test_rs3_files_that_make_no_treebank_are_refused(tmp_path, names, more, message, capsys):
    (tmp_path / "rs3").mkdir()
    assert run_rs3(rs3_folder(tmp_path / "rs3", names), *more) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "rs3-out").exists()


def test_a_split_without_documents_is_refused(tmp_path, capsys):
    """With GUM's `splits.md` for another treebank, nothing would be trained, without a message."""
    folder = gum_archives(tmp_path / "gum")
    (folder / "splits.md").write_text(splits_md(train=["x"], dev=["GUM_news_c"], test=["y"]), encoding="utf-8")
    assert (
        main(["discourse", "read-treebank", "--format", "gum", "--files", str(folder), "--out", str(tmp_path / "o")])
        == 2
    )
    error = capsys.readouterr().err
    assert "gum: no documents in split train (2 omitted: listed in splits.md, but not in the files; " in error
    assert not (tmp_path / "o").exists()


def test_wrong_span_numbers_are_notes(tmp_path):
    treebank = read_gum(gum_archives(tmp_path, dis=DIS.replace("(span 1 2)", "(span 1 3)")))
    assert treebank.notes == {"spans whose numbers differ from their leaves": 3}
    assert treebank.splits == read_gum(gum_archives(tmp_path)).splits


# trees placed over words


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["We left because", "it rained . Sad", "!"], "EDU 2 .* crosses the end of sentence 1"),
        (["We le", "ft because it rained .", "Sad !"], "EDU 1 .* ends inside the word 'left'"),
        (["We left", "because it snowed .", "Sad !"], "EDU 2 .* does not continue with 'rained'"),
        (["We left", "because it rained ."], "its EDUs end before 'Sad' in sentence 2"),
        (["We left", "because it rained .", "Sad !", "x"], "EDU 4 .* does not match the document text"),
        (["We left", "because it rained .", "", "Sad !"], "EDU 3 is empty"),
    ],
)
def test_uncovered_text_is_reported(texts, message):
    with pytest.raises(UserError, match=f"here: .*{message}"):
        align_edus(texts, WORDS, where="here")


def test_trees_of_every_format_are_placed():
    for annotated in (parse_rs3(RS4, where="a"), parse_brackets(DIS, where="a")):
        document = align_tree("d", WORDS, annotated, where="a")
        assert document.edus == EDUS
        assert document.dependencies.heads == (-1, 0, 0)


# RST-DT


def rst_dt(folder, *, text="We left\nbecause it rained.\n\nSad!\n", edus="We left\n    because it rained.\nSad!\n"):
    dis = DIS.replace("rained .", "rained.<P>").replace("Sad !", "Sad!").replace("causal-cause", "Consequence-s-e")
    dis = dis.replace("evaluation-comment", "comment")
    names = [("TRAINING", f"wsj_06{i:02}") for i in range(11)] + [("TEST", "wsj_1100"), ("OTHER", "wsj_2000")]
    for part, name in names:
        (folder / part).mkdir(parents=True, exist_ok=True)
        for suffix, content in ((".out.dis", dis), (".out.edus", edus), (".out", text)):
            if content is not None:
                (folder / part / f"{name}{suffix}").write_text(content, encoding="utf-8")
    return folder


def test_rst_dt_units_come_from_the_text(tmp_path):
    treebank = read_rst_dt(rst_dt(tmp_path))
    assert {split: len(documents) for split, documents in treebank.splits.items()} == {"train": 10, "dev": 1, "test": 1}
    assert treebank.splits["dev"][0].id == "wsj_0609"
    document = treebank.splits["test"][0]
    assert document.id == "wsj_1100"
    assert document.sentences == (("We", "left"), ("because", "it", "rained", "."), ("Sad", "!"))
    assert document.paragraphs == (0, 2)
    assert treebank.left_out == {"in neither of the folders TRAINING and TEST": ["wsj_2000.out"]}


def test_rst_dt_line_ends_inside_edus(tmp_path):
    treebank = read_rst_dt(rst_dt(tmp_path, text="\n\nWe left because\nit rained.\n\n\nSad!"))
    document = treebank.splits["test"][0]
    assert document.sentences == WORDS
    assert treebank.notes["line ends inside an EDU, which are no ends of sentences"] == 12


def test_rst_dt_without_running_text(tmp_path):
    treebank = read_rst_dt(rst_dt(tmp_path, text=None, edus=None))
    document = treebank.splits["test"][0]
    assert document.sentences == WORDS
    assert document.paragraphs == (0, 1)
    assert treebank.notes["documents whose sentences were guessed from the ends of EDUs"] == 12


def test_rst_dt_documents_have_one_tree(tmp_path):
    folder = rst_dt(tmp_path)
    (folder / "TEST/wsj_0600.dis").write_text((folder / "TRAINING/wsj_0600.out.dis").read_text())
    with pytest.raises(UserError, match=r"document 'wsj_0600' is also in .*: remove one"):
        read_rst_dt(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edus": "We left\nbecause it snowed.\nSad!\n"}, r"wsj_0600\.out\.edus: line 2 is 'because it snowed\.'"),
        ({"edus": "We left\nbecause it rained.\n"}, r"wsj_0600\.out\.edus: 2 EDUs, but the tree has 3"),
        ({"text": "Another text."}, r"wsj_0600\.out: differs from the text of the EDUs"),
    ],
)
def test_rst_dt_names_files_that_do_not_fit(tmp_path, changes, message):
    with pytest.raises(UserError, match=message):
        read_rst_dt(rst_dt(tmp_path, **changes))


# the real treebanks


@pytest.mark.slow
@mirror
def test_real_gum_counts():
    splits = read_gum(Path(MIRROR) / "gum").counts()["splits"]
    sizes = {split: [row[key] for key in ("documents", "sentences", "tokens", "edus")] for split, row in splits.items()}
    assert sizes == {
        "train": [177, 10224, 177410, 23013],
        "dev": [30, 1575, 28119, 3634],
        "test": [30, 1464, 28397, 3518],
    }


@mirror
def test_real_gcdt_counts():
    splits = read_gcdt(Path(MIRROR) / "gcdt").counts()["splits"]
    sizes = {split: [row[key] for key in ("documents", "sentences", "edus")] for split, row in splits.items()}
    assert sizes == {"train": [40, 2026, 7480], "dev": [5, 331, 1145], "test": [5, 335, 1092]}
