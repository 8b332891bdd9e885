"""From subword text to arrays on disk and back to documents."""

import numpy as np
import pytest
from core_fixtures import build_and_load

from docmt.corpora.documents import DocumentIndex
from docmt.errors import UserError
from docmt.instances.building import build_from_files
from docmt.instances.commands import instance_statistics
from docmt.instances.settings import InstancesSettings
from docmt.instances.storage import ARRAYS, load_instances, save_instances
from docmt.text.vocabulary import BOS, EOS, UNK, Vocabulary

WORDS = ["a", "b", "c", "d@@", "e"]
VOCABULARY = Vocabulary.from_symbols(WORDS)


def build(documents, *, out=None, **values):
    """Instances from documents with (source, target) sentences, written to a folder and loaded."""
    src = [pair[0] for document in documents for pair in document]
    tgt = [pair[1] for document in documents for pair in document]
    index = DocumentIndex(tuple(f"doc{i}" for i in range(len(documents))), tuple(map(len, documents)))
    return build_and_load(src, tgt, index, VOCABULARY, InstancesSettings(**values), out=out)


def repeated(*lengths):
    """A document with sentences of these lengths on both sides."""
    return [(["a"] * length, ["b"] * length) for length in lengths]


def test_unknown_words_and_spellings_of_marks_are_counted():
    built = build([[(["unknown", "<s>", "a"], ["b", "x"])]])
    assert built.sentences(0, "src")[0].tolist() == [BOS, UNK, UNK, VOCABULARY.encode(["a"])[0], EOS]
    counts = built.manifest["counts"]
    assert (counts["src_unknown_tokens"], counts["tgt_unknown_tokens"]) == (2, 1)


# Files


def write_files(folder, *, src="a b\n\nc\n", tgt="b\nd@@ e\n\n", index="document\tn_sentences\nx\t2\ny\t1\n"):
    (folder / "t.src").write_text(src, "utf-8")
    (folder / "t.tgt").write_text(tgt, "utf-8")
    (folder / "t.tsv").write_text(index, "utf-8")
    VOCABULARY.save(folder / "vocabulary.txt")
    return {
        "texts": [folder / "t.src", folder / "t.tgt"],
        "documents": folder / "t.tsv",
        "vocabulary": folder / "vocabulary.txt",
        "settings": InstancesSettings(),
    }


def test_round_trip_through_files(tmp_path):
    build_from_files(**write_files(tmp_path), out=tmp_path / "built")
    built = load_instances(tmp_path / "built")
    save_instances(tmp_path / "out", built)
    loaded = load_instances(tmp_path / "out")
    for name, dtype in ARRAYS.items():
        assert np.array_equal(getattr(loaded, name), getattr(built, name)), name
        assert getattr(loaded, name).dtype == dtype
    assert loaded.document_ids() == built.document_ids() == ["x", "y"]
    assert loaded.manifest["provenance"]["settings"]["max_tokens"] == 512
    # An empty sentence is a sentence, on both sides.
    assert [ids.tolist() for ids in loaded.sentences(0, "src")][1] == [BOS, EOS]
    assert [ids.tolist() for ids in loaded.sentences(1, "tgt")] == [[BOS, EOS]]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == [".checksums"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"src": "a\nb\n"}, r"t\.src: 2 lines, but .*t\.tsv lists 3"),
        ({"tgt": "a\nb\nc\nd\n"}, r"t\.tgt: 4 lines, but"),
        ({"index": "document\tn_sentences\n"}, "lists 0"),
        ({"index": "x\t3\n"}, "line 1 must be"),
        ({"src": "", "tgt": "", "index": "document\tn_sentences\n"}, "text is empty"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, change, message):
    with pytest.raises(UserError, match=message):
        build_from_files(**write_files(tmp_path, **change), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def saved(folder):
    build([repeated(3, 4), repeated(5)], out=folder)
    return folder


@pytest.mark.parametrize("rank", ["0", "1"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "text"])
def test_broken_file_is_named(tmp_path, monkeypatch, rank, damage):
    monkeypatch.setenv("LOCAL_RANK", rank)
    path = saved(tmp_path / "out") / "src_offsets.npy"
    data = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes({"empty": b"", "cut": data[:-8], "text": b"no array at all, just some text"}[damage])
    with pytest.raises(UserError, match=r"src_offsets\.npy|do not match"):
        load_instances(tmp_path / "out")


def test_arrays_of_another_build_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "1")  # which does not compare checksums
    saved(tmp_path / "out")
    build([repeated(7, 7, 7)], out=tmp_path / "other")
    (tmp_path / "other" / "tgt_tokens.npy").rename(tmp_path / "out" / "tgt_tokens.npy")
    with pytest.raises(UserError, match="do not match"):
        load_instances(tmp_path / "out")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"counts": {}}'])
def test_a_broken_manifest_is_refused(tmp_path, content):
    (saved(tmp_path / "out") / "manifest.json").write_text(content)
    with pytest.raises(UserError, match="out"):
        load_instances(tmp_path / "out")


def test_statistics_are_those_of_table_1():
    built = build([repeated(8, 8, 8), repeated(18)], max_tokens=20)
    assert instance_statistics(built.manifest["counts"]) == {
        "sentences": 4,
        "documents": 2,
        "instances": 3,
        "sentences_per_instance": 1.33,
        "tokens_per_instance": 16.7,
        "longest_instance_tokens": 20,
        "sentences_over_limit": 0,
        "instances_left_out": 0,
        "src_unknown_tokens": 0,
        "tgt_unknown_tokens": 0,
    }


def test_shuffled_sentences_keep_lengths(tmp_path):
    names = [chr(ord("a") + number) for number in range(5)]
    text = "".join(f"{name}\n" for name in names * 4)
    index = "document\tn_sentences\nx\t12\ny\t8\n"
    files = write_files(tmp_path, src=text, tgt=text.replace("a", "b"), index=index)
    for name in ("plain", "shuffled"):
        settings = InstancesSettings(max_sentences=1, shuffled=name == "shuffled")
        build_from_files(**files | {"settings": settings, "out": tmp_path / name})
    plain, shuffled = (load_instances(tmp_path / name) for name in ("plain", "shuffled"))

    def pairs(instances):
        sides = ([instances.sentences(i, side)[0].tolist() for i in range(20)] for side in ("src", "tgt"))
        return [(tuple(src), tuple(tgt)) for src, tgt in zip(*sides, strict=True)]

    assert pairs(shuffled) != pairs(plain)
    assert sorted(pairs(shuffled)) == sorted(pairs(plain))
    assert shuffled.documents.tolist() == plain.documents.tolist()
    with pytest.raises(UserError, match="have no trees"):
        build_from_files(**files | {"settings": settings, "out": tmp_path / "o"}, discourse=[tmp_path / "t"])
