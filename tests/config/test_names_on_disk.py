"""Names that are the same file or folder on a case-insensitive disk, as on macOS."""

import pytest
from smoke_study import smoke_config, smoke_values

from docmt.config.loading import load_config
from docmt.errors import UserError

VALUES = smoke_values()


def copy_of(section, name):
    rows = VALUES
    for key in section.split("."):
        rows = rows[key]
    return rows[name]


def nested(path, value):
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


SYSTEM = next(iter(VALUES["systems"]))
INSTANCES = next(iter(VALUES["instances"]))
TABLE = {"title": "x", "systems": [SYSTEM]}
FIGURE = {"title": "x", "series": {"a": [SYSTEM]}, "x_values": {SYSTEM: 1}}
SPLITS = {"files": {"both": "x.tsv"}}
CORPUS = {"languages": ["en", "de"], "format": {"reader": "jsonl"}, "splits": {"all": SPLITS}}
CURVES = {"title": "x", "systems": [SYSTEM], "panels": {"a": ["dev_loss"]}}
CLAIM = {"statement": "x", "metric": "dev_loss", "comparisons": [f"{SYSTEM} > document_transformer"]}
TREES, SEGMENTER = {"gold": True}, {"treebank": "gum"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (nested(f"systems.{SYSTEM.upper()}", copy_of("systems", SYSTEM)), ["config: systems:", SYSTEM.upper()]),
        (nested("datasets.Smoke", copy_of("datasets", "smoke")), ["'smoke' and 'Smoke'"]),
        (nested(f"instances.{INSTANCES.title()}", copy_of("instances", INSTANCES)), ["instances:", INSTANCES.title()]),
        (nested("corpora.controlled.SMOKE", {"generator": "flat"}), ["corpora", "'smoke' and 'SMOKE'"]),
        (nested("corpora.custom.Smoke", CORPUS), ["corpora:", "'smoke' and 'Smoke'"]),
        (nested("corpora.custom.WMT15-newstest-deen", CORPUS), None),
        (nested("corpora.custom.Bible-ende", CORPUS), ["'bible-ende' and 'Bible-ende'"]),
        (nested("corpora.custom.m", CORPUS | {"splits": {"all": SPLITS, "All": SPLITS}}), ["splits: 'all' and 'All'"]),
        (nested("corpora.custom.m", CORPUS | {"splits": {"a b": SPLITS}}), ["only letters, digits"]),
        (nested("discourse.segmenters", {"a": SEGMENTER, "A": SEGMENTER}), ["segmenters: 'a' and 'A'"]),
        (nested("discourse.trees", {"t-1": TREES, "T-1": TREES}), ["trees: 't-1' and 'T-1'"]),
        (nested("report.tables", {"one": TABLE, "One": TABLE}), ["report: tables: 'one' and 'One'"]),
        (nested("report.tables", {"Results": TABLE}), ["reserved for a table"]),
        (nested("report.figures", {"Distance_x": FIGURE}), ["must not start like"]),
        (nested("report", {"figures": {"x": FIGURE}, "curves": {"X": CURVES}}), ["figures and curves: 'x' and 'X'"]),
        (nested("report.claims", {"c": CLAIM, "C": CLAIM}), ["claims: 'c' and 'C'"]),
        (nested("datasets.Report", copy_of("datasets", "smoke")), ["reserved for a folder"]),
        (nested("datasets.smoke.test", {"t": ["smoke/test"], "T": ["smoke/test"]}), ["'t' and 'T'"]),
    ],
)
def test_names_equal_on_disk_are_refused(changes, words):
    if words is None:
        smoke_config(changes)
        return
    with pytest.raises(UserError) as error:
        load_config(smoke_values(changes))
    assert all(word in str(error.value) for word in words), str(error.value)


def test_suites_equal_on_disk_are_refused():
    suites = {"items": {"files": {"items": "x.jsonl"}}}
    corpora = {
        name: {"languages": ["en", "de"], "format": {"reader": "jsonl_suite"}, "splits": suite}
        for name, suite in (("a", suites), ("b", {"Items": suites["items"]}))
    }
    changes = {"corpora": {"custom": corpora}, "datasets": {"smoke": {"suites": ["a/items", "b/Items"]}}}
    with pytest.raises(UserError, match="'a/items' and 'b/Items' would both be called"):
        smoke_config(changes)


def test_tests_and_generative_suites_share_a_name():
    """CXMI is not computed for generative suites."""
    suites = {"probe": {"files": {"items": "x.jsonl"}}}
    corpus = {"languages": ["en", "de"], "format": {"reader": "jsonl_generative"}, "splits": suites}
    dataset = {"test": {"probe": ["smoke/test"]}, "suites": ["a/probe"]}
    metrics = ["s-BLEU", "d-BLEU (instances)", "CXMI"]
    changes = {"corpora": {"custom": {"a": corpus}}, "datasets": {"smoke": dataset}, "report": {"figures": {}}}
    smoke_config(changes | {"evaluation": {"metrics": metrics}})


def test_tests_and_suites_share_a_name_without_cxmi():
    changes = {"datasets": {"smoke": {"test": {"Pronoun": ["smoke/test"]}, "suites": ["smoke/pronoun"]}}}
    smoke_config(changes)
    with pytest.raises(UserError, match=r"'test\.Pronoun' and 'smoke/pronoun' would both be called 'pronoun'"):
        smoke_config(changes | {"evaluation": {"metrics": ["s-BLEU", "CXMI"]}})
