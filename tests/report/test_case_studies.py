"""Case studies: selection and display of sentences."""

import json

import pytest

from docmt.cli.main import main
from docmt.errors import UserError
from docmt.report.case_studies import choose_cases, read_cases
from docmt.report.markup import write_table
from docmt.report.settings import ReportSettings
from docmt.report.study_tables import case_table

SOURCE = ["s0", "s1", "s2", "t0", "t1"]
REFERENCE = ["der Hund", "die Katze", "das | Haus", "ein Mann", "eine Frau"]
OURS = ["der Hund", "die Katze", "das | Haus", "xxxx", "eine Frau"]
THEIRS = ["der Hund", "xxxx", "das | Maus", "ein Mann", "eine Fr"]


@pytest.fixture
def text(tmp_path):
    (tmp_path / "t.documents.tsv").write_text("document\tn_sentences\na\t3\nb\t2\n")
    for lang, lines in (("en", SOURCE), ("de", REFERENCE)):
        (tmp_path / f"t.{lang}").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def write_hypotheses(path, lines, *, aligned=True):
    rows = [
        {"instance": i, "document": "ab"[i], "first_sentence": a, "n_sentences": b - a, "aligned": aligned,
         "sentences": lines[a:b]}
        for i, (a, b) in enumerate(((0, 3), (3, 5)))
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def choose(text, ours=OURS, theirs=THEIRS, *, aligned=True, **layout):
    case = {"title": "T", "system": "new", "baseline": "old", "test": "d/t"} | layout
    settings = ReportSettings.load({"cases": {"c": case}, "labels": {"new": "New"}}, where="report")
    values = choose_cases(
        settings.cases["c"],
        settings,
        prefix=text / "t",
        src_lang="en",
        tgt_lang="de",
        system=write_hypotheses(text / "new.jsonl", ours, aligned=aligned),
        baseline=write_hypotheses(text / "old.jsonl", theirs),
    )
    return values, settings


def test_the_largest_differences_come_first_with_their_context(text):
    values, _ = choose(text, count=2, context=1)
    rows = list(values[["case", "part", "text"]].itertuples(index=False, name=None))
    assert rows[:5] == [
        ("a, sentence 2", "source −1", "s0"),
        ("a, sentence 2", "source", "s1"),
        ("a, sentence 2", "reference", "die Katze"),
        ("a, sentence 2", "old", "xxxx"),
        ("a, sentence 2", "New", "die Katze"),
    ]
    assert [row[0] for row in rows[5:]] in (["b, sentence 2"] * 5, ["a, sentence 3"] * 5)
    assert values["chrF"].tolist()[3:5] == [0, pytest.approx(100)]


def test_contexts_and_worse_sentences(text):
    values, _ = choose(text, count=9, context=5)
    cases = list(dict.fromkeys(values["case"]))
    assert set(cases) == {"a, sentence 2", "a, sentence 3", "b, sentence 2"}
    assert values[values["case"] == "a, sentence 3"]["text"].tolist()[:3] == ["s0", "s1", "s2"]
    assert values[values["case"] == "b, sentence 2"]["text"].tolist()[:2] == ["t0", "t1"]
    assert choose(text, ours=THEIRS)[0].empty


def test_ties_are_in_the_order_of_the_text(text):
    values, _ = choose(text, theirs=["xxxx"] * 5, ours=REFERENCE, count=5, context=0)
    assert list(dict.fromkeys(values["case"])) == [f"a, sentence {i}" for i in (1, 2, 3)] + [
        f"b, sentence {i}" for i in (1, 2)
    ]


def test_translations_without_alignment_are_refused(text):
    with pytest.raises(UserError, match="aligned sentence by sentence"):
        choose(text, aligned=False)


def test_the_command_writes_what_the_report_reads(text):
    _, settings = choose(text)
    options = ["--settings", json.dumps(settings.model_dump(mode="json")), "--name", "c"]
    options += ["--texts", *(str(text / f"t.{suffix}") for suffix in ("en", "de", "documents.tsv"))]
    options += ["--src-lang", "en", "--tgt-lang", "de", "--system", str(text / "new.jsonl")]
    options += ["--baseline", str(text / "old.jsonl"), "--out", str(text / "c")]
    assert main(["report", "cases", *options]) == 0
    table = case_table("c", read_cases(text / "c.csv"), settings)
    assert table.header == ["Sentence", "", "chrF", "Text"]
    assert table.rows[0] == ["a, sentence 2", "source −1", "–", "s0"]
    assert table.rows[1][0] == ""
    assert 5 in table.breaks
    assert "das \\| Haus" in (text / "c.md").read_text(encoding="utf-8")
    assert "New is ahead of old by most chrF" in table.caption


def test_line_ends_and_empty_translations(text):
    values, settings = choose(text, ours=["der Hund", "die\rKatze\n!", *OURS[2:]], theirs=[THEIRS[0], "", *THEIRS[2:]])
    write_table(text / "c", case_table("c", values, settings))
    table = case_table("c", read_cases(text / "c.csv"), settings)
    assert [row[-1] for row in table.rows[3:5]] == ["", "die Katze !"]
    assert values["text"][3] == ""
    assert len((text / "c.md").read_text(encoding="utf-8").split("\n\n")[0].splitlines()) == 2 + len(table.rows)


def test_no_sentences_give_an_empty_table(text):
    values, settings = choose(text, ours=THEIRS)
    assert case_table("c", values, settings).rows == []
    values.to_csv(text / "empty.csv", index=False)
    assert case_table("c", read_cases(text / "empty.csv"), settings).rows == []
