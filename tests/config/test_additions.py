"""Additions to a study rerun no existing training, text or instances."""

from pathlib import Path

import pytest
from smoke_study import StudyView, smoke_config, smoke_values

from docmt.commands import as_argument
from docmt.config.loading import load_config, merge

FILES = ("a.en", "a.de", "b.en", "b.de", "extra.de")


def own_corpus(**splits):
    """A corpus in the layout of `docmt init`, with these splits in files with the same names."""
    return {
        "languages": ["en", "de"],
        "format": {"reader": "blank_lines"},
        "splits": {name: {"files": {lang: f"{file}.{lang}" for lang in ("en", "de")}} for name, file in splits.items()},
    }


BASE = {
    "corpora": {"custom": {"mine": own_corpus(train="a", dev="a", test="a")}},
    "datasets": {
        "mine": {
            "src_lang": "en",
            "tgt_lang": "de",
            "train": ["mine/train"],
            "dev": ["mine/dev"],
            "test": {"talks": ["mine/test"]},
        }
    },
}
UNUSED = {"corpora": {"custom": {"mine": own_corpus(train="a", dev="a", test="a", more="b")}}}
SECOND = merge(UNUSED, {"datasets": {"mine": {"test": {"news": ["mine/more"]}}}})
SYSTEM = {"instances": "documents", "architecture": "document_transformer", "size": "tiny", "recipe": "scratch"}
TRAINED = ("corpora", "text", "discourse", "instances", "training")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        Path(name).write_text(f"{name}\n", encoding="utf-8")


def fingerprints(changes):
    """Fingerprints and stages of all artifacts that rules make, by declaration and wildcards."""
    study = StudyView(load_config(merge(smoke_values(BASE), changes)))
    return {
        (artifact.declaration, artifact.wildcards): (artifact.stage, artifact.fingerprint)
        for artifact in study.artifacts
        if artifact.rules
    }


def changed_stages(changes):
    """Stages of artifacts that exist before and after a change, and differ."""
    before, after = fingerprints({}), fingerprints(changes)
    return {before[key][0] for key in before.keys() & after.keys() if before[key] != after[key]}


def test_an_unused_split_changes_nothing():
    assert changed_stages(UNUSED) == set()


@pytest.mark.parametrize(
    "changes",
    [
        SECOND,
        {"datasets": {"mine": {"suites": ["smoke/pronoun"]}}},
        {"datasets": {"more": BASE["datasets"]["mine"]}},
        {"systems": {"more": SYSTEM}},
        {"seeds": [1, 2]},
        {"datasets": {"mine": {"references": {"talks": ["extra.de"]}}}},
    ],
    ids=["test set", "suite", "dataset", "system", "seed", "reference"],
)
def test_an_addition_only_reruns_scores_and_counts(changes):
    assert not changed_stages(changes) & {"training", "decoding"}
    before, after = fingerprints({}), fingerprints(changes)
    rerun = {key[0] for key in before.keys() & after.keys() if before[key] != after[key]}
    # Tables over all splits, whatever they count.
    assert not {name for name in rerun if before_stage(before, name) in TRAINED} - {
        "overlap",
        "instance_statistics",
        "tree_statistics",
        "roundtrip",
    }


def before_stage(artifacts, declaration):
    return next(stage for (name, _), (stage, _) in artifacts.items() if name == declaration)


def test_command_line_has_only_the_split():
    study = StudyView(load_config(merge(smoke_values(BASE), UNUSED)))
    spec = study.corpus_text("mine", "train", "en-de").options["spec"]
    assert list(spec.splits) == ["train"]
    assert "b.en" not in as_argument(spec)


@pytest.mark.parametrize(
    "changes",
    [
        {"discourse": {"trees": {"parsed": {"n_shards": 3}}}},
        {"decoding": {"n_shards": 3}},
        {"training": {"scratch": {"loggers": ["csv"]}}},
        {"training": {"scratch": {"keep_checkpoints": 2}}},
        {"training": {"scratch": {"checkpoint_every_minutes": 5, "checkpoint_every_steps": 7}}},
        {"corpora": {"mirror": "elsewhere"}},
        # Keys without effect in this study
        {"text": {"sentencepiece_size": 99}},
        {"instances": {"documents": {"subset_seed": 7}}},
        {"training": {"scratch": {"pretrained_learning_rate": 0.5, "init_new_parameters": "zero", "drop_rst": 0.5}}},
        {"training": {"scratch": {"restoration": {"gap_ratio": 0.5}}}},
    ],
)
def test_options_change_no_fingerprint(changes):
    assert changed_stages(changes) == set()


def test_order_of_languages_changes_no_fingerprint():
    before = fingerprints({})
    study = merge(smoke_values(BASE), {})
    files = study["corpora"]["custom"]["mine"]["splits"]["train"]["files"]
    study["corpora"]["custom"]["mine"]["splits"]["train"]["files"] = dict(reversed(files.items()))
    after = StudyView(load_config(study))
    split = after.corpus_text("mine", "train", "en-de")
    assert (split.stage, split.fingerprint) in before.values()


def test_devices_of_comet_change_no_score():
    Path("comet.ckpt").write_text("weights")
    comet = {"evaluation": {"comet": {"checkpoint": "comet.ckpt"}}}
    other = {"evaluation": {"comet": {"checkpoint": "comet.ckpt", "batch_size": 3, "gpus": 0, "program": "x"}}}
    assert fingerprints(comet) == fingerprints(other)


def test_a_moved_file_changes_nothing():
    Path("folder").mkdir()
    for name in ("a.en", "a.de"):
        Path("folder", name).write_bytes(Path(name).read_bytes())
    assert changed_stages({"corpora": {"custom": {"mine": own_corpus(train="folder/a", dev="a", test="a")}}}) == set()


def test_a_corrected_reference_trains_nothing():
    """The split with the reference is read, cut, translated and scored again."""
    before = fingerprints({"corpora": {"custom": {"mine": own_corpus(train="a", dev="a", test="b")}}})
    Path("b.de").write_text("corrected\n", encoding="utf-8")
    from docmt.config.user_files import content_digest

    content_digest.cache_clear()
    after = fingerprints({"corpora": {"custom": {"mine": own_corpus(train="a", dev="a", test="b")}}})
    changed = {key for key in before if before[key] != after[key]}
    assert ("hypotheses", ("mine", "rst_mix", "1", "test_talks")) in changed
    assert not {key for key in changed if key[0] == "model"}


@pytest.mark.slow
def test_arguments_do_not_grow_with_runs():
    """The largest single argument for 5,000 runs. Systems limit it to 128 KiB."""
    study = StudyView(smoke_config({"seeds": list(range(1, 1001))}))
    params = [*study.report().params.values(), *study.reader().params.values()]
    assert max(len(as_argument(value)) for value in params) < 65_536
    assert len(study.report().input_files("histories")) == 4_000
