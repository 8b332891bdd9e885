"""CXMI in a study: for each run on each test, with trees and without."""

import csv

METRICS = ["s-BLEU", "d-BLEU (instances)", "chrF", "CXMI"]


def test_a_study_says_how_much_its_systems_use_context(study):
    changes = {"evaluation": {"metrics": METRICS}}
    done = study.run("results/report/scores.csv", changes=changes)
    assert done.returncode == 0, done.stderr
    with (study.folder / "results/report/scores.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "CXMI"]
    values = {(row["system"], row["test"], row["phenomenon"]): float(row["value"]) for row in rows}
    systems = {system for system, _, _ in values}
    assert {"sentence_transformer", "rst_mix", "rst_mix_without_trees", "document_transformer"} <= systems
    for system in systems:
        assert {(test, name) for other, test, name in values if other == system} == {
            ("controlled", ""), ("pronoun", ""), ("pronoun", "pronoun"),
        }  # fmt: skip
    assert abs(values["sentence_transformer", "controlled", ""]) < 1e-4
    assert abs(values["rst_mix", "pronoun", ""]) > 1e-4
    assert not {job for job in study.jobs(changes) if job.startswith("measure_context")}
