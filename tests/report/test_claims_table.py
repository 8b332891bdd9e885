"""The table of claims, in the report and by its command."""

import pandas as pd
import pytest
from score_rows import long_table, of_seeds, training, write_scores

from docmt.cli.main import main
from docmt.errors import UserError
from docmt.files import write_json
from docmt.report.claims.judging import claims_table
from docmt.report.page import build_report
from docmt.report.settings import ReportSettings

SETTINGS = {
    "labels": {"a": "System A"},
    "claims": {
        "first": {
            "statement": "A is better", "paper": "P", "source": "Table 1", "reported": "2 against 1",
            "metric": "s-BLEU", "test": "t", "comparisons": ["a > b"], "margin": 0.5, "remark": "smaller",
        },
        "second": {"statement": "A is | known", "metric": "dev_loss", "step": 50, "comparisons": ["a > b"]},
    },
}  # fmt: skip
ROWS = of_seeds("a", 9.0, 9.5, 10.0) + of_seeds("b", 5.0, 5.5, 6.0)


def test_row_says_claim_and_conclusion():
    table = claims_table(long_table(ROWS), [training("a")], ReportSettings.load(SETTINGS, where="report"))
    assert table is not None
    assert table.rows == [
        [
            "A is better (smaller)", "P, Table 1", "2 against 1",
            "s-BLEU, t: System A 9.50 ± 0.50 (3); b 5.50 ± 0.50 (3)",
            "a > b, margin 0.5: 4.00 [4.00, 4.00] (seeds only)", "supported", "supported",
        ],
        [
            "A is | known", "–", "–", "dev_loss at 50: System A 4.000 (1); b – (0)", "a > b: 0 of 3 seeds",
            "not run", "–",
        ],
    ]  # fmt: skip
    assert table.full["verdict"].tolist() == ["supported", "not run"]
    assert table.full["low"][0] == 4.0
    assert claims_table(long_table(ROWS), [], ReportSettings()) is None


def test_row_names_control_and_power():
    claims = {
        "learned": {
            "statement": "A has learned",
            "metric": "dev_loss",
            "first_step_below": 4.5,
            "comparisons": ["a < 100"],
        },
        "third": SETTINGS["claims"]["first"] | {"comparisons": ["a > b"], "control": "learned"},
    }
    rows = of_seeds("a", 4.0, 0.0, 4.0) + of_seeds("b", 0.0, 0.0, 0.0)
    settings = ReportSettings.load(SETTINGS | {"claims": claims}, where="report")
    table = claims_table(long_table(rows), [training("a", seed=1)], settings)
    assert table is not None
    assert table.rows[0][3:] == [
        "first update with dev_loss of at most 4.5: System A 50 (1)", "a < 100: 1 of 3 seeds", "not run", "–",
    ]  # fmt: skip
    assert table.rows[1][3:] == [
        "s-BLEU, t: System A 2.67 ± 2.31 (3); b 0.00 ± 0.00 (3); control learned: not run",
        "a > b, margin 0.5: 2.67 [−1.23, 6.56] (seeds only), 10 seeds show 1.97, 9 seeds show the difference",
        "not run",
        "–",
    ]


def test_a_row_says_which_update_was_never_reached():
    claims = {
        "late": {"statement": "A is late", "metric": "dev_loss", "first_step_below": 2.5, "comparisons": ["a > 100"]}
    }
    trainings = [training("a", seed) for seed in (1, 2, 3)]
    table = claims_table(long_table(ROWS), trainings, ReportSettings.load({"claims": claims}, where="report"))
    assert table is not None
    assert table.rows[0][3:] == [
        "first update with dev_loss of at most 2.5: a at least 183 ± 29 (3)", "a > 100: 83 [35, inf] (seeds only)",
        "supported", "supported",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("controls", "message"),
    [
        ({"first": "learnt"}, "claims.first.control: no claim 'learnt'"),
        ({"first": "second", "second": "first"}, "claims.first.control: 'second' has a control itself"),
        ({"first": "first"}, "claims.first.control: 'first' has a control itself"),
    ],
)
def test_a_control_is_another_claim_without_a_control(controls, message):
    claims = {name: row | {"control": controls.get(name)} for name, row in SETTINGS["claims"].items()}
    with pytest.raises(UserError) as caught:
        ReportSettings.load({"claims": claims}, where="report")
    assert message in str(caught.value)


def test_claims_follow_the_tables():
    report = build_report(long_table(ROWS), ReportSettings.load(SETTINGS, where="report"))
    assert report.sections[0].key == "claims"


def test_command_prints_all_claims_or_one(tmp_path, capsys):
    for system in ("a", "b"):
        write_scores(tmp_path / f"{system}.json", [each for each in ROWS if each["system"] == system])
    write_json(tmp_path / "settings.json", SETTINGS)
    arguments = ["report", "claims", "--settings", f"@{tmp_path}/settings.json", "--out", str(tmp_path / "claims")]
    scores = ["--scores", str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    assert main([*arguments, "--name", "--histories", *scores]) == 0
    assert "does not" not in (printed := capsys.readouterr().out)
    assert "supported" in printed
    assert "not run" in printed
    assert (tmp_path / "claims.txt").read_text() in printed
    assert r"A is \| known" in (tmp_path / "claims.md").read_text()
    assert pd.read_csv(tmp_path / "claims.csv")["claim"].tolist() == ["first", "second"]
    assert main([*arguments, "--name", "second"]) == 0
    assert pd.read_csv(tmp_path / "claims.csv")["verdict"].tolist() == ["not run"]
    assert main([*arguments, "--name", "third"]) == 2
    assert "report.claims: no claim 'third'" in capsys.readouterr().err
    assert main(["report", "claims", "--out", str(tmp_path / "claims")]) == 2
    assert "the study has no claims" in capsys.readouterr().err
