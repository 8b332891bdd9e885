"""A stage reruns only if its inputs or settings changed. A failed job never leads to mixed settings."""

import csv
import json

import pytest
from smoke_study import StudyView

TRAINED = ("sentence_transformer", "g_transformer_finetuned", "document_transformer", "rst_mix")
SYSTEMS = (*TRAINED, "rst_mix_without_trees")
COMPARED = ("g_transformer_finetuned", "sentence_transformer")
COMPARISON = f"evaluate_difference {' '.join(COMPARED)}"
CASES = "report_cases table_4"
SPLITS = ("train", "dev", "test_smoke")
SCORES = {"report_collect report", "report_render"}
REPORT = SCORES | {"report_reader"}


def of_run(system, *rules):
    names = {
        "train": f"train {system}",
        "translate": f"translate {system} test_smoke",
        "score_candidates": f"score_candidates {system} pronoun",
        "evaluate_run": f"evaluate_run {system}",
    }
    if system == "rst_mix_without_trees":
        del names["train"]
    return {names[rule] for rule in rules or names} | of_comparison(system, rules or tuple(names))


def of_comparison(system, rules):
    """Results that depend on both the fine-tuned system and its baseline: paired tests and the case study."""
    if system not in COMPARED:
        return set()
    outputs = {COMPARISON} if {"translate", "score_candidates"} & {*rules} else set()
    return outputs | ({CASES} if "translate" in rules else set())


def of_rst():
    return of_run("rst_mix") | of_run("rst_mix_without_trees")


FROM_BPE = {
    "learn_bpe",
    "learn_vocabulary",
    "save_pipeline",
    *(f"apply_bpe {split} {lang}" for split in SPLITS for lang in ("en", "de")),
    *(
        f"instances_build {cutting} {split}"
        for cutting in ("sentences", "documents", "documents_with_trees")
        for split in SPLITS
    ),
    "instances_count",
    "count_roundtrip",
    *(job for system in SYSTEMS for job in of_run(system)),
    *REPORT,
}
FROM_TREES = {
    *(f"annotate parsed {split} 1 1" for split in SPLITS),
    "annotate parsed suite_pronoun 1 1",
    "count_trees parsed",
    *(f"instances_build documents_with_trees {split}" for split in SPLITS),
    "instances_count",
    *of_rst(),
    *REPORT,
}
"""Jobs that depend on the trees. Text stages do not."""
NEW_SYSTEM = {
    "instances": "documents",
    "architecture": "concatenation",
    "size": "tiny",
    "recipe": "scratch",
}

IN_SHARDS = {f"translate_shard concatenation test_smoke {shard} 2" for shard in (1, 2)} | {
    "join_translations concatenation test_smoke"
}

CHANGES = {
    "report title": ({"report": {"title": "Another"}}, {"report_render", "report_reader"}),
    "label of a system": (
        {"report": {"labels": {"document_transformer": "D"}}},
        {"report_render", "report_reader", CASES},
    ),
    "size of the reader": ({"report": {"reader": {"max_megabytes": 2}}}, {"report_reader"}),
    "mirror, and what nothing uses": (
        {
            "corpora": {"mirror": "elsewhere"},
            "training": {"unused": {"max_steps": 5}},
            "instances": {"unused": {"max_tokens": 64}},
        },
        set(),
    ),
    "metrics": (
        {"evaluation": {"metrics": ["s-BLEU", "d-BLEU (instances)"]}},
        {job for system in SYSTEMS for job in of_run(system, "evaluate_run")} | {COMPARISON} | SCORES,
    ),
    "beam size": (
        {"decoding": {"beam_size": 3}},
        {job for system in SYSTEMS for job in of_run(system, "translate", "evaluate_run")} | REPORT,
    ),
    "learning rate of one system": (
        {"systems": {"document_transformer": {"training": {"learning_rate": 2.0e-3}}}},
        of_run("document_transformer") | REPORT,
    ),
    "learning rate of a system that another starts from": (
        {"systems": {"sentence_transformer": {"training": {"learning_rate": 2.0e-3}}}},
        of_run("sentence_transformer") | of_run("g_transformer_finetuned") | of_rst() | REPORT,
    ),
    "size of one system": (
        {"systems": {"document_transformer": {"model": {"encoder_layers": 3}}}},
        of_run("document_transformer") | REPORT,
    ),
    "recipe": (
        {"training": {"finetune": {"word_dropout": 0.1}}},
        of_run("g_transformer_finetuned") | of_rst() | REPORT,
    ),
    "parser": (
        {"discourse": {"parsers": {"tiny": {"settings": {"sentence_constraint": False}}}}},
        {"train_parser tiny", "evaluate_parser tiny"} | FROM_TREES,
    ),
    "segmenter": (
        {"discourse": {"segmenters": {"tiny": {"seed": 2}}}},
        {f"{verb}_{what} tiny" for verb in ("train", "evaluate") for what in ("segmenter", "parser")} | FROM_TREES,
    ),
    "treebank": (
        {"corpora": {"controlled": {"smoke_treebank": {"seed": 3}}}},
        {"controlled_generate smoke_treebank"}
        | {f"{verb}_{what} tiny" for verb in ("train", "evaluate") for what in ("segmenter", "parser")}
        | FROM_TREES,
    ),
    "beam size of one system": (
        {"systems": {"rst_mix": {"decoding": {"beam_size": 3}}}},
        of_run("rst_mix", "translate", "evaluate_run") | REPORT,
    ),
    "dropped trees": ({"systems": {"rst_mix": {"training": {"drop_rst": 0.3}}}}, of_rst() | REPORT),
    "shards": ({"decoding": {"n_shards": 3}}, set()),
    "new system in shards": (
        {"systems": {"concatenation": NEW_SYSTEM}, "decoding": {"n_shards": 2}},
        (of_run("concatenation") | REPORT | IN_SHARDS) - {"translate concatenation test_smoke"},
    ),
    "new system": ({"systems": {"concatenation": NEW_SYSTEM}}, of_run("concatenation") | REPORT),
    "new suite": (
        {"datasets": {"smoke": {"suites": ["smoke/pronoun", "smoke/deixis"]}}},
        {job for system in SYSTEMS for job in (f"score_candidates {system} deixis", f"evaluate_run {system}")}
        | {"annotate parsed suite_deixis 1 1", COMPARISON}
        | REPORT,
    ),
    "BPE merges": ({"text": {"bpe_merges": 80}}, FROM_BPE),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_reruns_exactly_what_depends_on_it(name, finished):
    changes, expected = CHANGES[name]
    assert finished.jobs(changes) == expected


OTHER_CORPUS = {"corpora": {"controlled": {"smoke": {"seed": 2}}}}


def test_another_corpus_reruns_all(finished):
    everything = finished.jobs(OTHER_CORPUS)
    rules = {job.split()[0] for job in everything}
    assert {
        "controlled_generate",
        "corpora_combine",
        "count_overlap",
        "tokenize",
        "truecase",
        "train",
        "report_render",
    } <= rules
    assert everything >= FROM_BPE


@pytest.mark.slow
def test_rerun_never_mixes_two_settings(study):
    """Two systems change, and one training fails. Its old scores look up to date, but must not reach the report."""
    row = {"training": {"learning_rate": 2.0e-3}}
    changes = {"systems": {"g_transformer_finetuned": row, "document_transformer": row}}
    checkpoints = study.folder / "results/smoke/runs/document_transformer/seed1/checkpoints"
    aside = checkpoints.with_name("aside")
    checkpoints.rename(aside)
    checkpoints.write_text("a file where a folder is needed")

    failed = study.run("--keep-going", changes=changes)
    assert failed.returncode != 0
    assert not (study.folder / "results/smoke/runs/document_transformer/seed1/model.pt").exists()
    assert score_fingerprint(study, "document_transformer") == planned(study, "document_transformer")
    assert score_fingerprint(study, "g_transformer_finetuned") == planned(study, "g_transformer_finetuned", changes)
    assert report_fingerprints(study) == {planned(study, system) for system in SYSTEMS}

    checkpoints.unlink()
    aside.rename(checkpoints)
    assert study.jobs(changes) == of_run("document_transformer") | REPORT
    finished = study.run(changes=changes)
    assert finished.returncode == 0, finished.stderr[-5000:]
    assert report_fingerprints(study) == {planned(study, system, changes) for system in SYSTEMS}
    assert study.jobs(changes) == set()


def planned(study, system, changes=None):
    return StudyView(study.plan(changes).config).scores("smoke", system, "1").fingerprint


def score_fingerprint(study, system):
    file = study.folder / f"results/smoke/runs/{system}/seed1/scores.json"
    return json.loads(file.read_text(encoding="utf-8"))["provenance"]["fingerprint"]


def report_fingerprints(study):
    with open(study.folder / "results/report/scores.csv", encoding="utf-8", newline="") as file:
        return {row["fingerprint"] for row in csv.DictReader(file)}
