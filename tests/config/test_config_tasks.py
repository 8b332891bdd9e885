"""Systems of cross-task pre-training in a study: training inputs and scores."""

from pathlib import Path

import pytest
from smoke_study import StudyView

from docmt.config.loading import load_config, merge, read_config_file
from docmt.config.plan import Plan
from docmt.config.systems import training_settings
from docmt.errors import UserError

EXAMPLES = Path(__file__).parents[2] / "config/examples"
CONTROLLED = read_config_file(EXAMPLES / "controlled/controlled_crosstask.yaml")
PAPER = [EXAMPLES / "papers/paper_crosstask_ende.yaml", EXAMPLES / "papers/paper_crosstask_zhen.yaml"]
FOLDER = "results/controlled/instances/documents"


def model(study, system):
    return study.model("controlled", system, "1")


def load(**changes):
    return load_config(merge(CONTROLLED, changes))


@pytest.mark.parametrize(
    ("tasks", "reads"),
    [
        (["pairs", "restoration"], ["sentences", "monolingual"]),
        (["pairs"], ["sentences"]),
        (["restoration"], ["monolingual"]),
        (["documents", "sentences"], []),
        (["documents"], []),
    ],
)
def test_a_training_reads_what_its_tasks_need(tasks, reads):
    study = StudyView(load(systems={"pretrained": {"training": {"tasks": tasks}}}))
    files = [file for name in ("pairs", "monolingual") for file in model(study, "pretrained").input_files(name)]
    assert files == [f"{FOLDER}/{part}/manifest.json" for part in reads]


@pytest.mark.parametrize(("tasks", "lang"), [(["restoration"], "en"), (["documents"], None)])
def test_training_gets_the_monolingual_language(tasks, lang):
    study = StudyView(load(systems={"pretrained": {"training": {"tasks": tasks}}}))
    assert model(study, "pretrained").params["monolingual_lang"] == lang


def test_other_data_or_noise_retrain_what_reads_them():
    plain = StudyView(load())

    def changed(**changes):
        other = StudyView(load(**changes))
        systems = ("scratch", "pretrained", "tuned")
        return [name for name in systems if model(other, name).fingerprint != model(plain, name).fingerprint]

    noise = {"pretrain": {"restoration": {"gap_ratio": 0.3}}}
    assert changed(training=noise) == ["pretrained", "tuned"]
    assert changed(training={"finetune": {"tasks": ["documents", "sentences"]}}) == ["scratch", "tuned"]
    # The vocabulary is learned on all text, so other text changes every model.
    assert changed(corpora={"controlled": {"pairs": {"seed": 9}}}) == ["scratch", "pretrained", "tuned"]


def test_a_pre_training_is_trained_but_not_scored():
    plan = Plan(load())
    assert any("/pretrained/" in file for file in plan.targets()["training"])
    for files in (plan.targets()["decoding"], plan.targets()["evaluation"]):
        assert not any("/pretrained/" in file for file in files)
        assert any("/tuned_sent/" in file for file in files)


def test_the_same_models_read_sentences_and_documents():
    study = StudyView(load())
    for system, context in (("tuned", "document"), ("tuned_sent", "none")):
        hypotheses = study.hypotheses("controlled", system, "1", "test_controlled")
        probabilities = study.probabilities("controlled", system, "1", "pronoun")
        for artifact in (hypotheses, probabilities):
            assert artifact.input_files("model") == ["results/controlled/runs/tuned/seed1/model.pt"]
            assert dict(artifact.params["settings"])["context"] == context


def test_a_study_needs_a_system_that_is_scored():
    with pytest.raises(UserError, match="no system is scored"):
        load(systems={name: {"evaluate": False} for name in CONTROLLED["systems"]})


def test_sentence_tasks_need_no_room_for_a_document():
    load(systems={"transformer": {"training": {"max_batch_tokens": 512}}})


@pytest.mark.parametrize("file", PAPER, ids=lambda file: file.stem)
def test_full_scale_rates_are_the_papers(file):
    config = load_config(read_config_file(file))
    for system, factor, warmup in (("pretrained", 1.0, 16_000), ("tuned", 0.3, 4_000)):
        training = training_settings(config, system)
        assert training.warmup_steps == warmup
        assert training.learning_rate == pytest.approx(factor * (512 * warmup) ** -0.5, rel=1e-3)
    assert training.pretrained_learning_rate == training.learning_rate


def test_all_instances_read_are_counted():
    targets = Plan(load()).targets()["instances"]
    assert sorted(target for target in targets if "/controlled/" in target) == sorted(
        [
            *(
                f"{FOLDER}/{part}/manifest.json"
                for part in ("train", "dev", "test_controlled", "sentences", "monolingual")
            ),
            "results/controlled/instances/statistics.csv",
        ]
    )
    pairs_only = load(training={"pretrain": {"tasks": ["pairs"]}})
    assert f"{FOLDER}/monolingual/manifest.json" not in Plan(pairs_only).targets()["instances"]
