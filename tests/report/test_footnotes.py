"""Sentences next to the tables that prevent misreadings of numbers."""

import json

import pytest
from score_rows import accuracy, best_cells, history, long_table, score
from smoke_study import StudyView

from docmt.config.loading import load_config, merge, read_config_file
from docmt.report.footnotes import leak_footnote, updates_footnote
from docmt.report.markup import to_latex, to_markdown
from docmt.report.page import build_report
from docmt.report.report_files import ReportFiles
from docmt.report.score_tables import main_table
from docmt.report.settings import ReportSettings
from docmt.report.study_facts import StudyFacts
from docmt.report.summary import summarize
from docmt.report.tables import to_text

LABELS = ReportSettings(labels={"s": "Sentences", "d": "Documents", "f": "Fine-tuned"})
ORIGINS = {"s": ["s"], "d": ["d"], "f": ["f", "s"], "other": ["s"]}
UNSCORED = summarize(long_table([]))


def histories(**steps):
    return [
        history(system, seed, dataset="x", step=[1, count])
        for system, counts in steps.items()
        for seed, count in enumerate(counts)
    ]


@pytest.mark.parametrize(
    ("steps", "systems", "remark"),
    [
        ({"s": [800], "d": [800]}, ["s", "d"], ""),
        ({"s": [800], "d": [790]}, ["s", "d"], ""),
        ({"s": [800, 1000], "d": [200]}, ["s", "d"], "Trained with fewer updates than Sentences (900): Documents (2"),
        ({"s": [300], "f": [500]}, ["s", "f"], "Trained with fewer updates than Fine-tuned (800): Sentences (300)."),
        ({"s": [800], "d": [200]}, ["d", "other"], "Trained with fewer updates than other (800): Documents (200)."),
        ({"s": [800]}, ["s", "unknown"], ""),
        ({}, ["s"], ""),
    ],
)  # fmt: skip
def test_fewer_updates_are_named(steps, systems, remark):
    footnote = updates_footnote(histories(**steps), ORIGINS, systems, LABELS, UNSCORED)
    assert footnote.startswith(remark)
    assert bool(footnote) == bool(remark)


def test_fewer_added_updates_are_named():
    arguments = histories(s=[800], f=[200]), ORIGINS, ["s", "f"], LABELS, UNSCORED
    footnote = updates_footnote(*arguments, extended=["f"])
    assert footnote.endswith(
        "New parts were trained for fewer updates than the initial model: Fine-tuned (200 after 800)."
    )
    assert "New parts" not in updates_footnote(*arguments), "a model that is only trained for longer has none"


def test_updates_are_compared_on_shared_datasets():
    elsewhere = [history("s", dataset="y", step=[100]), history("e", dataset="z", step=[9])]
    trainings = [*histories(s=[1000], d=[1000], f=[700]), *elsewhere]
    settings = LABELS.model_copy(update={"baseline": "s"})
    assert updates_footnote(trainings, {}, ["s", "d", "e"], settings, UNSCORED) == ""
    later = updates_footnote(trainings, ORIGINS, ["s", "f"], settings, UNSCORED, extended=["f"])
    assert later.startswith("Trained with more updates than Sentences (1,000): Fine-tuned (1,700).")
    assert later.endswith("Fine-tuned (700 after 1,000).")


def bleu(system, value, **keys):
    return score(system, value, dataset="x", **keys)


MORE = "Trained with more updates than Documents (200): Sentences (800). A higher score may only mean that."
FEWER = "Trained with fewer updates than Sentences (800): Documents (200). A lower score may only mean that."


@pytest.mark.parametrize(
    ("baseline", "scores", "remark"),
    [
        ("d", None, MORE),
        ("d", (21, 20), MORE),
        ("d", (20, 20), ""),
        ("d", (19, 20), ""),
        ("s", None, FEWER),
        ("s", (21, 20), FEWER),
        ("s", (20, 20), ""),
        ("s", (19, 20), ""),
        (None, (19, 20), ""),
    ],
)
def test_baseline_is_compared_with_others(baseline, scores, remark):
    settings = LABELS.model_copy(update={"baseline": baseline})
    missing = [bleu(system, value) | {"metric": "chrF"} for system, value in (("s", None), ("d", 30))]
    rows = [bleu("s", scores[0]), bleu("d", scores[1])] if scores else []
    summary = summarize(long_table([*rows, *missing]))
    trainings = histories(s=[800], d=[200])
    assert updates_footnote(trainings, ORIGINS, ["s", "d"], settings, summary) == remark
    if baseline:
        other = LABELS.model_copy(update={"baseline": {"s": "d", "d": "s"}[baseline]})
        assert updates_footnote(trainings, ORIGINS, ["s", "d"], other, summary, baseline=baseline) == remark


SIGNATURE = "nrefs:1|case:mixed|tok:13a|version:2.6.0"


@pytest.mark.parametrize(
    ("signatures", "cells", "note"),
    [
        ([SIGNATURE] * 3, ["9.00", "9.50", "8.00"], ""),
        (
            [SIGNATURE, SIGNATURE.replace("13a", "none").replace("mixed", "lc"), SIGNATURE],
            ["9.00", "9.50 †", "8.00"],
            "† x/t Documents, s-BLEU: not comparable, computed with case:lc, tok:none; "
            "the others with case:mixed, tok:13a.",
        ),
        (
            [SIGNATURE, SIGNATURE, SIGNATURE.replace("2.6.0", "1.5.1")],
            ["9.00", "9.50", "8.00 †"],
            "† x/t Fine-tuned, s-BLEU: not comparable, computed with version:1.5.1; the others with version:2.6.0.",
        ),
        (
            [SIGNATURE, f"{SIGNATURE}|warning:the translations look tokenized (9 % have @@)", SIGNATURE],
            ["9.00", "9.50", "8.00"],
            "x/t Documents: the translations look tokenized (9 % have @@).",
        ),
        (
            [SIGNATURE, "not computed: no number, but value nan", SIGNATURE],
            ["9.00", "–", "8.00"],
            "x/t Documents: s-BLEU is not computed: no number, but value nan.",
        ),
        (["not computed: no Java"] * 3, ["–", "–", "–"], "s-BLEU is not computed: no Java."),
    ],
)
def test_unlike_scores_are_named(signatures, cells, note):
    rows = [
        bleu(system, None if signature.startswith("not") else value, signature=signature)
        for system, value, signature in zip("sdf", (9, 9.5, 8), signatures, strict=True)
    ]
    table = main_table(summarize(long_table(rows)), LABELS)
    assert [row[-1] for row in table.rows] == cells
    assert table.note.removeprefix("Bold: best.").strip() == note
    assert bool(best_cells(table)) == ("†" not in note and cells[0] != "–"), (
        "nothing is the best of what cannot be compared"
    )
    assert note in to_text(table).replace("\n", " ")


def test_systems_of_one_name_each_keep_their_remark():
    rows = [bleu("s", None, signature="not computed: no Java"), bleu("d", 9), bleu("f", 8)]
    table = main_table(summarize(long_table(rows)), ReportSettings(labels={"s": "same", "d": "same"}))
    assert table.note == "Bold: best. x/t same: s-BLEU is not computed: no Java."


def test_unlike_seeds_are_named():
    signatures = [SIGNATURE, SIGNATURE, SIGNATURE.replace("13a", "zh")]
    rows = [bleu("s", 9, signature=signature, seed=seed) for seed, signature in enumerate(signatures)]
    table = main_table(summarize(long_table(rows)), LABELS)
    assert (
        table.note.removeprefix("Bold: best. ")
        == "† x/t Sentences, s-BLEU: not comparable, computed with tok:zh; the others with tok:13a."
    )


def test_leaked_test_text_is_named():
    overlaps = [
        (dataset, test, {"seen_sources_percent": percent})
        for dataset, test, percent in [
            ("x", "test_t", 1.0),
            ("x", "test_u", 0.99),
            ("x", "dev", 9),
            ("g", "test_t", 99),
        ]
    ]
    footnote = leak_footnote([*overlaps, ("y", "test_t", {})], ["g"], is_shown=lambda *_: True)
    assert footnote == "In the training text, too, so scores may be too high: x/t (1.0 % of the source sentences)."
    assert leak_footnote(overlaps, [], is_shown=lambda dataset, test: (dataset, test) == ("g", "t")).count("%") == 1
    assert leak_footnote(overlaps, ["g", "x"], is_shown=lambda *_: True) == ""


@pytest.mark.slow
def test_remarks_stand_under_the_tables_in_every_form(tmp_path):
    overlap = tmp_path / "x/corpora/overlap.json"
    overlap.parent.mkdir(parents=True)
    overlap.write_text(json.dumps({"tests": {"test_t": {"sentences": 4, "seen_sources": 3}}}))
    histories = []
    for system, steps in (("s", 800), ("d", 200)):
        histories.append(tmp_path / f"x/runs/{system}/seed1/history.csv")
        histories[-1].parent.mkdir(parents=True)
        histories[-1].write_text(f"step,train_loss\n{steps},2.5\n")
    files = ReportFiles(histories=histories, overlaps=[overlap])
    study = StudyFacts(origins=ORIGINS, generated=["x"])
    scores = [bleu("s", 9), bleu("d", 8)]
    rows = long_table([*scores, accuracy("s", 50, dataset="x", phenomenon="deixis")])
    settings = ReportSettings.load(
        {"tables": {"table_1": {"title": "T", "systems": ["s", "d"], "note": "Mine."}}}, where="r"
    )
    report = build_report(rows, settings, files=files, study=study)
    notes = {table.key: table.note for table in report.tables}
    assert notes["table_1"].startswith("Mine. Bold: best. Trained with fewer updates than s (800): d (200).")
    assert notes["results"].startswith("Bold: best. Trained with fewer updates than s (800)")
    assert notes["contrastive"].startswith("Items: deixis 9.")
    assert "Trained" not in notes["contrastive"], "it is said once"
    assert "generated" not in notes["overlap"], "the box above the tables says that the text is generated"
    assert "the text of x is generated and says nothing about other text" in report.findings[-1]
    (results,) = (table for table in report.tables if table.key == "results")
    assert "fewer updates" in to_text(results)
    assert "fewer updates" in to_latex(results)
    assert "fewer updates" not in to_markdown(results), "the page in Markdown has the note after the table"


def test_plan_knows_origins(pytestconfig):
    values = read_config_file(pytestconfig.rootpath / "config/examples/smoke.yaml")
    facts = json.loads(StudyView(load_config(values)).report().params["study"])
    assert facts["origins"]["rst_mix"][0] == "rst_mix"
    assert facts["origins"]["g_transformer_finetuned"] == ["g_transformer_finetuned", "sentence_transformer"]
    assert facts["generated"] == ["smoke"]
    extended = facts["extended"]
    assert extended == ["g_transformer_finetuned", "rst_mix", "rst_mix_without_trees"]
    again = {"instances": "documents", "use_model_of": "g_transformer_finetuned"}
    longer = values["systems"]["sentence_transformer"] | {"init": "sentence_transformer"}
    changed = merge(values, {"systems": {"again": again, "longer": longer}})
    facts = json.loads(StudyView(load_config(changed)).report().params["study"])
    assert facts["origins"]["again"] == ["g_transformer_finetuned", "sentence_transformer"]
    assert facts["extended"] == [*extended, "again"], "the longer training adds no part"
