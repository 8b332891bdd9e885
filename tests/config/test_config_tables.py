"""Tables for cross-task pre-training: system properties in the config, and table inputs."""

from pathlib import Path

import pytest
import yaml
from smoke_study import StudyView, smoke_study

import docmt.report.publications
from docmt.config.loading import load_config, merge, read_config_file
from docmt.config.paper_columns import paper_columns
from docmt.config.plan import Plan
from docmt.evaluation.metrics import CXMI

EXAMPLES = Path(__file__).parents[2] / "config/examples"
ZHEN = load_config(read_config_file(EXAMPLES / "papers/paper_crosstask_zhen.yaml"))
PUBLISHED = yaml.safe_load(
    (Path(docmt.report.publications.__file__).parent / "published/cross-task.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    ("system", "sentences", "documents", "read"),
    [
        ("transformer", "✗", "✗", "sentences"),
        ("scratch", "✗", "✗", "documents"),
        ("transformer_tuned", "✓", "✓", "sentences"),
        ("tuned_sent", "✓", "✓", "sentences"),
        ("tuned_pairs", "✓", "✗", "documents"),
        ("tuned_documents", "✗", "✓", "documents"),
    ],
)
def test_tables_1_and_2_describe_systems(system, sentences, documents, read):
    facts = paper_columns(ZHEN, system)
    assert (facts["Bi-sent"], facts["Mo-doc"], facts["Input"]) == (sentences, documents, read)
    assert ("Gap ratio" in facts) == (documents == "✓")


@pytest.mark.parametrize(
    ("system", "gap_ratio", "objective", "tasks"),
    [
        ("tuned", "20%", "CA-GSR + CA-MSR", "documents, sentences"),
        ("tuned_gap_10", "10%", "CA-GSR + CA-MSR", "documents, sentences"),
        ("tuned_msr", "0%", "CA-MSR", "documents, sentences"),
        ("tuned_without_joint_sent", "20%", "CA-GSR + CA-MSR", "documents"),
    ],
)
def test_tables_3_6_and_7_describe_changes(system, gap_ratio, objective, tasks):
    facts = paper_columns(ZHEN, system)
    assert (facts["Gap ratio"], facts["Objective"], facts["Fine-tuning tasks"]) == (gap_ratio, objective, tasks)


def test_one_sentence_instances_are_sentences():
    values = read_config_file(EXAMPLES / "papers/paper_crosstask_zhen.yaml")
    alone = merge(values, {"instances": {"alone": {"max_tokens": 512, "max_sentences": 1}}})
    alone["systems"]["scratch"]["instances"] = "alone"
    assert paper_columns(load_config(alone), "scratch")["Input"] == "sentences"


@pytest.mark.parametrize(
    ("pair", "number"),
    [("ende", n) for n in (1, 2)] + [("enru", 4)] + [("zhen", n) for n in (1, 2, 3, 5, 6, 7)],
)
def test_paper_tables_have_all_our_rows(pair, number):
    config = load_config(read_config_file(EXAMPLES / f"papers/paper_crosstask_{pair}.yaml"))
    table = config.report.tables[f"table_{number}"]
    theirs = {f"cross-task/{row}" for row in PUBLISHED["tables"][f"Table {number}"]["rows"]}
    assert {config.report.published[system] for system in table.systems} == theirs - {"cross-task/qcn"}
    assert len(set(table.systems)) == len(table.systems)


def test_table_needs_only_its_systems():
    plan = Plan(ZHEN)
    folder = "results/zhen/runs"
    assert StudyView(plan.config).table("table_7").input_files() == [
        f"{folder}/{system}/seed1/scores.json" for system in ("tuned", "tuned_msr")
    ]


def test_baseline_adds_paired_tests():
    values = read_config_file(EXAMPLES / "papers/paper_crosstask_zhen.yaml")
    table = {"title": "x", "systems": ["transformer", "tuned"], "tests": ["zhen/nist06"]}
    plan = Plan(load_config(merge(values, {"report": {"tables": {"x": table | {"baseline": "transformer"}}}})))
    folder = "results/zhen/runs"
    differences = f"{folder}/tuned/against/transformer.json"
    assert StudyView(plan.config).table("x").input_files("differences") == [differences]
    artifact = StudyView(plan.config).differences("zhen", "tuned", "transformer")
    assert artifact.files == [differences]
    assert f"{folder}/tuned/seed1/decoding/test_nist06.jsonl" in artifact.input_files("outputs")
    assert f"{folder}/transformer/seed1/decoding/test_nist06.jsonl" in artifact.input_files("baseline")
    assert differences in StudyView(plan.config).report().input_files("differences")
    assert not StudyView(Plan(ZHEN).config).report().input_files("differences")


def test_report_baseline_is_for_all_systems():
    study = smoke_study({"report": {"baseline": "sentence_transformer"}})
    others = [name for name in study.config.systems if name != "sentence_transformer"]
    expected = {f"results/smoke/runs/{name}/against/sentence_transformer.json" for name in others}
    assert set(study.report().input_files("differences")) == expected


CASES = {"title": "x", "system": "rst_mix", "baseline": "sentence_transformer", "test": "smoke/smoke"}


def test_case_study_needs_two_systems():
    view = smoke_study({"report": {"cases": {"x": CASES}}})
    study = view.case_study("x")
    folder = "results/smoke/runs"
    assert study.input_files("system") == [f"{folder}/rst_mix/seed1/decoding/test_smoke.jsonl"]
    assert study.input_files("baseline") == [f"{folder}/sentence_transformer/seed1/decoding/test_smoke.jsonl"]
    assert "results/tables/x.csv" in view.report().input_files("cases")


def test_test_set_can_be_named_like_a_suite():
    table = {"title": "t", "systems": ["rst_mix"], "metrics": [CXMI], "tests": ["smoke/suite_x"]}
    changes = {"datasets": {"smoke": {"test": {"suite_x": ["smoke/test"]}}}}
    changes |= {"evaluation": {"metrics": ["s-BLEU", "d-BLEU (instances)", CXMI]}, "report": {"tables": {"t": table}}}
    study = smoke_study(changes)
    assert [Path(file).stem for file in study.table("t").input_files("scores")] == ["cxmi_test_suite_x"]
