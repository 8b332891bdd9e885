"""Declarations of artifacts match the rules, and fingerprints only change on purpose."""

import json
import re

import pytest
from smoke_study import ROOT, StudyView, smoke_config, smoke_study, smoke_values

from docmt.config.artifacts.base import DECLARATIONS, RULES, STAGE_VERSIONS, Artifact, Study, artifact
from docmt.config.artifacts.study import STAGES, final_outputs, targets
from docmt.config.loading import load_config, merge, read_config_file
from docmt.config.plan import Plan

RUN = ("smoke", "rst_mix", "1")
GOLDEN = {
    "split": "c0a168315d5f",
    "subwords": "e9dd722d63f4",
    "trees": "8b48ae00da2a",
    "instances": "d05d2121a802",
    "model": "bf18ee3a9ccd",
    "hypotheses": "8ffda652b5af",
    "probabilities": "e32e184d663a",
    "scores": "56d0d2db8248",
}


@pytest.fixture(scope="module")
def smoke():
    return smoke_study()


def rules_of_files():
    """Rules in `workflow/rules/{stage}.smk`, by stage."""
    pattern = re.compile(r"^(?:use rule \w+ as (\w+) with|rule (\w+)):", re.MULTILINE)
    return {
        file.stem: [one or other for one, other in pattern.findall(file.read_text(encoding="utf-8"))]
        for file in (ROOT / "workflow/rules").glob("*.smk")
    }


def test_rules_and_declarations_match():
    declared = {stage: sorted(rules) for stage, rules in STAGES.items()}
    assert declared == {stage: sorted(rules) for stage, rules in rules_of_files().items()}


def test_snakefile_includes_all_stages_in_order():
    text = (ROOT / "Snakefile").read_text(encoding="utf-8")
    assert re.findall(r'include: "workflow/rules/(\w+)\.smk"', text) == list(STAGE_VERSIONS)
    assert set(STAGE_VERSIONS) <= set(re.findall(r"^rule (\w+):", text, re.MULTILINE))


def test_what_rules_ask_for_is_declared():
    """All names in calls to the plan, for shipped configs and a config with user-supplied output."""
    kinds = {"input": "inputs", "param": "params", "params": "params", "options": "options", "file_option": "inputs"}
    asked = set()
    for file in (ROOT / "workflow/rules").glob("*.smk"):
        calls = re.findall(r"plan\.(input|params?|options|file_option)\((.*?)\)", file.read_text("utf-8"), re.DOTALL)
        for kind, names in calls:
            artifact, *others = re.findall(r'"(\w+)"', names)
            asked |= {(artifact, kinds[kind], name) for name in others}
    declared = set()
    system = {"hypotheses": {"smoke/smoke": "a"}, "log_probabilities": {"smoke/pronoun": "b"}}
    suites = {
        "smoke": {
            "train": ["mine/all", "europarl/all"],
            "suites": ["mine/items", "smoke/pronoun", "ctxpro-ende/auxiliary_dev"],
            "filters": {"train": "web"},
        }
    }
    evaluation = {"metrics": ["s-BLEU", "d-BLEU (instances)", "CXMI"], "comet": {"checkpoint": "c"}}
    mine = {
        "all": {"files": {"en": "a.en", "de": "a.de"}},
        "items": {"files": {"items": "b.jsonl"}, "format": {"reader": "jsonl_suite"}},
    }
    custom = {"mine": {"languages": ["en", "de"], "format": {"reader": "blank_lines"}, "splits": mine}}
    filters, mtdata = {"web": {"max_test_overlap": 0.5}}, {"europarl": {"id": "Statmt-europarl-10-deu-eng"}}
    corpora = {"custom": custom, "filters": filters, "mtdata": mtdata}
    name = "opus-mt-en-de"
    systems = {"given": system, "published": {"instances": "sentences", "init": {"pretrained": name}}}
    text = {"tokenization": "sentencepiece", "truecase": False, "pretrained": name}
    given_values = {"systems": systems, "evaluation": evaluation, "corpora": corpora, "text": text}
    files = [ROOT / "config/config.yaml", *(ROOT / "config/examples").rglob("*.yaml")]
    of_files = (StudyView(load_config(read_config_file(file))) for file in files)
    for study in [smoke_study(given_values | {"datasets": suites}), *of_files]:
        assert study.artifacts
        for (name, *_), declaration in study.declared.items():
            for kind in ("inputs", "params", "options"):
                declared |= {(name, kind, key) for key in getattr(declaration, kind)}
    assert asked <= declared


def fingerprints(study):
    return {
        "split": study.dataset_split("smoke", "dev"),
        "subwords": study.subwords("smoke", "train", "en"),
        "trees": study.document_trees("smoke", "parsed", "train"),
        "instances": study.instances("smoke", "documents_with_trees", "train"),
        "model": study.model(*RUN),
        "hypotheses": study.hypotheses(*RUN, "test_smoke"),
        "probabilities": study.probabilities(*RUN, "pronoun"),
        "scores": study.scores(*RUN),
    }


@pytest.fixture(autouse=True)
def sacrebleu_of_2026(monkeypatch):
    install(monkeypatch, sacrebleu="2.6.0")


def install(monkeypatch, **versions):
    """Pretend that these package versions are installed."""
    monkeypatch.setattr("docmt.config.artifacts.scores.installed_packages", lambda _: versions)


def test_fingerprints_change_on_purpose_only():
    """Another value here makes every finished study train again. If you intend this, raise the stage's version."""
    artifacts = fingerprints(smoke_study())
    assert {name: artifact.fingerprint for name, artifact in artifacts.items()} == GOLDEN


def test_another_package_version_reruns_scoring_only(monkeypatch):
    studies = []
    for version in ("2.6.0", "2.7.0"):
        install(monkeypatch, sacrebleu=version)
        studies.append(smoke_study())
        studies[-1].differences("smoke", "rst_mix", "sentence_transformer")
        assert [artifact.fingerprint for artifact in studies[-1].artifacts]
    one, other = (study.declared for study in studies)
    changed = [one[key] for key in one if one[key].fingerprint != other[key].fingerprint]
    assert {artifact.rules[0] for artifact in changed} >= {"evaluate_run", "evaluate_difference"}
    assert {artifact.stage for artifact in changed} == {"evaluation", "report"}


def test_shards_and_beam_do_not_matter(smoke):
    changes = {"discourse": {"trees": {"parsed": {"n_shards": 3}}}, "decoding": {"beam_size": 7}}
    other = smoke_study(changes)
    mine, theirs = fingerprints(smoke), fingerprints(other)
    assert len(theirs["trees"].files) == 3
    changed = {name for name in mine if mine[name].fingerprint != theirs[name].fingerprint}
    assert changed == {"hypotheses", "scores"}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [({"ties": "first"}, {"scores"}), ({"score": "per_token"}, {"probabilities", "scores"})],
)
def test_rules_of_contrastive_sets_matter_to_these_alone(smoke, rules, expected):
    other = smoke_study({"evaluation": {"contrast": rules}})
    mine, theirs = (fingerprints(study) for study in (smoke, other))
    assert {name for name in mine if mine[name].fingerprint != theirs[name].fingerprint} == expected


def test_search_matters_where_it_makes_context():
    changes = {"evaluation": {"contrast": {"context": "own"}}}
    studies = [smoke_study(changes | {"decoding": {"beam_size": size}}) for size in (2, 7)]
    assert len({each.probabilities(*RUN, "pronoun").fingerprint for each in studies}) == 2


def test_stages_hand_on_what_others_read_or_nobody(smoke):
    targets = smoke.targets
    assert "results/smoke/text/train.bpe.en" in targets["text"]
    assert not any(".tok." in file or ".true." in file for file in targets["text"])
    trained = ("sentence_transformer", "g_transformer_finetuned", "document_transformer", "rst_mix")
    models = {f"results/smoke/runs/{system}/seed1/model.pt" for system in trained}
    assert {file for file in targets["training"] if file.endswith("model.pt")} == models
    assert {"results/report/report.html", "results/report/reader.html"} <= set(targets["report"])


def test_report_follows_the_order_of_the_config(smoke):
    assert list(json.loads(smoke.report().params["study"])["stages"]) == list(STAGE_VERSIONS)
    trained = [run.system for run in smoke.trained]
    assert [file.split("/")[3] for file in smoke.report().input_files("histories")] == trained != sorted(trained)


def test_reader_uses_the_first_seeds():
    def reader(**settings):
        changes = {"seeds": [5, 3], "report": {"reader": settings}}
        return smoke_study(changes)

    def outputs(seed):
        folder = f"results/smoke/runs/rst_mix/seed{seed}/decoding"
        return {f"{folder}/test_smoke.jsonl", f"{folder}/suite_pronoun.json"}

    study = reader()
    read = set(study.reader().input_files())
    assert outputs(5) <= read
    assert not outputs(3) & read
    assert outputs(5) | outputs(3) <= set(reader(seeds=2).reader().input_files())
    assert not any("scores" in file for file in read)
    assert "reader" not in study.report().params["settings"], "its settings rerun nothing else"
    settings = smoke_study({"report": {"baseline": "rst_mix"}}).reader().params["settings"]
    assert settings["baseline"] == "rst_mix", "A at first"


@pytest.fixture
def registry(monkeypatch):
    """The registry of declarations, which is restored after the test."""
    monkeypatch.setattr("docmt.config.artifacts.base.RULES", {stage: [*rules] for stage, rules in RULES.items()})
    before = dict(DECLARATIONS)
    yield DECLARATIONS
    DECLARATIONS.clear()
    DECLARATIONS.update(before)


def test_artifact_is_declared_once(registry):
    calls = []

    @artifact("rule", stage="text")
    def thing(study, name):
        calls.append(name)
        return Artifact([f"{name}.txt"])

    study = Study(smoke_config())
    assert thing(study, "a") is thing(study, "a")
    assert (calls, thing(study, "a").stage, thing(study, "a").declaration) == (["a"], "text", "thing")


def test_inputs_are_files_of_artifacts(smoke):
    source = Artifact(["a.en", "a.de", "a.documents.tsv"], stage="text")
    inputs = {"texts": [source.select(".en", ".de")], "index": source.select(".tsv")}
    instances = Artifact(["b"], inputs, stage="instances")
    assert instances.input_files() == ["a.en", "a.de", "a.documents.tsv"]
    assert instances.input_files("index") == ["a.documents.tsv"]
    assert targets([instances])["text"] == ["a.en", "a.de", "a.documents.tsv"]


def test_new_rule_needs_only_a_declaration(registry):
    """Fingerprint, inputs and targets follow from the declaration. Only the rule and its command are additional."""

    @artifact("count_words", stage="text")
    def word_counts(study, dataset):
        splits = [
            DECLARATIONS["dataset_split"](study, dataset, split) for split in study.config.datasets[dataset].parts()
        ]
        file = f"results/{dataset}/text/words.json"
        return Artifact([file], {"splits": splits}, {"unit": "word", "lang": None}, {"jobs": 2})

    plan = Plan(smoke_config())
    wildcards = {"dataset": "smoke"}
    counts = word_counts(plan.study, "smoke")
    assert plan.input("word_counts", "splits")(wildcards) == counts.input_files()
    assert "results/smoke/corpora/en-de/dev.en" in counts.input_files()
    assert plan.param("word_counts", "unit")(wildcards) == "word"
    assert plan.params("word_counts", "unit", "lang")(wildcards) == "--unit word"
    assert plan.options("word_counts", "jobs")(wildcards, input=None) == "--jobs 2"
    assert plan.fingerprint("word_counts")(wildcards) == counts.fingerprint
    assert "results/smoke/text/words.json" in targets([*final_outputs(plan.study), counts])["text"]


def test_chained_sentences_are_other_trees():
    changes = {"discourse": {"trees": {"parsed": {"sentences": "chain"}}}}
    plain, chained = (smoke_study(each).document_trees("smoke", "parsed", "dev") for each in ({}, changes))
    assert chained.fingerprint != plain.fingerprint
    assert chained.params == plain.params | {"sentences": "chain"}


@pytest.mark.parametrize("change", [{"loggers": ["csv"]}, {"graphs": "auto"}])
def test_loggers_and_graphs_are_in_no_fingerprint(change):
    changed = smoke_study({"training": {"scratch": change}})
    assert [artifact.fingerprint for artifact in changed.artifacts] == [
        artifact.fingerprint for artifact in smoke_study().artifacts
    ]


def test_training_text_matters_to_some_metrics(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given.txt").write_text("A line.\n")
    more_text = {"datasets": {"smoke": {"train": ["smoke/train", "smoke_treebank/train"]}}}
    equalities = []
    for metric in ("chrF", "APT"):
        changes = {"systems": {"given": {"hypotheses": {"smoke/smoke": "given.txt"}}}}
        base = merge(changes, {"evaluation": {"metrics": ["s-BLEU", "d-BLEU (instances)", metric]}})
        before, after = (smoke_study(merge(base, each)) for each in ({}, more_text))
        scores = [study.scores("smoke", "given", "1").fingerprint for study in (before, after)]
        equalities.append(scores[0] == scores[1])
    assert equalities == [True, False]


def test_report_reads_histories_of_unscored_systems():
    """Otherwise, a failed training of such a system would not run again, and the report would seem to be up to date."""
    row = {"instances": "documents", "architecture": "document_transformer", "size": "tiny", "recipe": "scratch"}
    base = {"systems": {"unscored": row | {"evaluate": False}}}
    change = {"systems": {"unscored": {"training": {"learning_rate": 2.0e-3}}}}
    before, after = (smoke_study(merge(base, each)) for each in ({}, change))
    assert before.model("smoke", "unscored", "1").fingerprint != after.model("smoke", "unscored", "1").fingerprint
    assert before.scores_table("report").fingerprint == after.scores_table("report").fingerprint
    assert before.report().fingerprint != after.report().fingerprint


def test_scoring_ignores_the_precision(smoke):
    other = smoke_study({"decoding": {"precision": "float32"}})
    for name in ("probabilities", "cxmi"):
        part = "pronoun" if name == "probabilities" else "test_smoke"
        mine, theirs = (getattr(study, name)(*RUN, part) for study in (smoke, other))
        assert (mine.params, mine.fingerprint) == (theirs.params, theirs.fingerprint)


def test_report_keeps_the_configured_order():
    values = smoke_values()
    tables, figures = values["report"]["tables"], values["report"]["figures"]
    values["report"]["tables"] = {name: tables["table_1"] for name in ("table_9", "table_10", "appendix")}
    figures["figure_2"]["series"] = {"Z": ["rst_mix"], "A": ["sentence_transformer"]}
    figures["figure_1"] = figures["figure_2"]
    plan = Plan(load_config(values))
    report = json.loads(plan.settings("report")({}))
    assert list(report["tables"]) == ["table_9", "table_10", "appendix"]
    assert list(report["figures"]) == ["figure_2", "figure_1"]
    assert list(report["figures"]["figure_2"]["series"]) == ["Z", "A"]
    values["report"]["tables"] = dict(reversed(values["report"]["tables"].items()))
    other = Plan(load_config(values))
    assert other.settings("report")({}) != plan.settings("report")({})
    run = {"dataset": "smoke", "system": "rst_mix", "seed": "1"}
    assert other.settings("model")(run) == plan.settings("model")(run)


@pytest.mark.parametrize("tasks", [["documents"], ["documents", "pairs"]])
@pytest.mark.parametrize("trees", [{"files": {}}, {"gold": True}, {"segmenter": "tiny", "parser": "chain"}])
def test_trees_of_sentence_pairs(trees, tasks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = ["train", "dev", "test_smoke", "suite_pronoun", *(["sentences"] if "pairs" in tasks else [])]
    for part in parts:
        (tmp_path / part).write_text(part)
    row = trees | ({"files": {f"smoke/{part}": part for part in parts}} if "files" in trees else {})
    study = smoke_study(
        {
            "discourse": {"trees": {"mine": row}},
            "instances": {"documents_with_trees": {"trees": "mine"}},
            "datasets": {"smoke": {"sentences": ["smoke_treebank/train"]}},
            "systems": {"rst_mix": {"training": {"tasks": tasks}}},
        }
    )
    manifest = "results/smoke/instances/documents_with_trees/sentences/manifest.json"
    sentences = [artifact for artifact in study.artifacts if manifest in artifact.files]
    assert len(sentences) == ("pairs" in tasks)
    assert all(len(artifact.input_files("discourse")) == 1 for artifact in sentences)


def test_trees_of_one_split_are_separate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = ("train", "dev", "test_smoke", "suite_pronoun", "suite_deixis")
    for part in parts:
        (tmp_path / f"{part}.jsonl").write_text(part)
    before, after = (
        smoke_study(
            {
                "discourse": {"trees": {"own": {"files": {f"smoke/{part}": f"{part}.jsonl" for part in parts[:n]}}}},
                "instances": {"documents_with_trees": {"trees": "own"}},
                "datasets": {"smoke": {"suites": ["smoke/pronoun", "smoke/deixis"][: n - 3]}},
            }
        )
        for n in (4, 5)
    )
    assert (
        before.document_trees("smoke", "own", "train").fingerprint
        == after.document_trees("smoke", "own", "train").fingerprint
    )
    assert before.model(*RUN).fingerprint == after.model(*RUN).fingerprint
    assert (
        before.document_trees("smoke", "own", "dev").fingerprint
        != before.document_trees("smoke", "own", "train").fingerprint
    )
