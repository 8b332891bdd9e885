"""A job reruns exactly if its command line, or the content or producer of an input, changed (`rerun_oracle`)."""

from dataclasses import replace
from pathlib import Path

import pytest
from rerun_oracle import Jobs, compare, keys, nested, other_values
from smoke_study import ROOT, SMOKE

from docmt.config.loading import merge, read_config_file
from docmt.errors import UserError

CONTROLLED = ROOT / "config/examples/controlled/controlled_crosstask.yaml"
IDLE = {
    "decoding.n_shards",
    "corpora.custom.mine.splits.all.documents",  # expected counts
    "corpora.custom.mine.splits.all.sentences",
    "discourse.trees.parsed.n_shards",
    "evaluation.comet.batch_size",
    "evaluation.comet.gpus",
    "evaluation.comet.program",
    *(
        f"training.{recipe}.{key}"
        for recipe in ("finetune", "scratch", "pretrain")
        for key in ("loggers", "checkpoint_every_minutes", "checkpoint_every_steps", "keep_checkpoints", "graphs")
    ),
}
"""Keys that change no content."""


def rich_values():
    """The smoke study with a corpus from files, filters, COMET, CXMI and an external system."""
    for name in ("a.en", "a.de", "flags", "given.de", "comet.ckpt", "more.de", "trees.jsonl"):
        Path(name).write_text(f"{name}\n")
    custom = {
        "languages": ["en", "de"],
        "format": {"reader": "blank_lines"},
        "splits": {"all": {"files": {"en": "a.en", "de": "a.de"}}},
    }
    return merge(
        read_config_file(SMOKE),
        {
            "corpora": {
                "custom": {"mine": custom},
                "filters": {"web": {"external": {"mine/all": "flags"}, "max_test_overlap": 0.5}},
            },
            "datasets": {
                "smoke": {
                    "train": ["smoke/train", "mine/all"],
                    "filters": {"train": "web"},
                    "references": {"smoke": ["more.de"]},
                }
            },
            "systems": {"given": {"hypotheses": {"smoke/smoke": "given.de"}}},
            "evaluation": {"metrics": ["s-BLEU", "d-BLEU (instances)", "CXMI"], "comet": {"checkpoint": "comet.ckpt"}},
        },
    )


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return rich_values()


def try_keys(values, tried):
    """Change all keys that were not tried before. Returns disagreements, and keys that changed no job."""
    before = Jobs(values)
    wrong, idle = [], set()
    for path, annotation, value in keys(before.config):
        key = ".".join(part for part in path if part not in before.config.systems or part == path[-1])
        if key in tried:
            continue
        for new in other_values(annotation, value):
            try:
                after = Jobs(merge(values, nested(path, new)))
            except (UserError, OSError):
                continue
            tried.add(key)
            disagreements, changed = compare(before, after)
            wrong += [(".".join(path), value, new, *disagreement) for disagreement in disagreements]
            if not changed:
                idle.add(".".join(path))
            break
    return wrong, idle


@pytest.mark.parametrize(
    ("declaration", "changes", "verdict"),
    [
        ("hypotheses", lambda config: {"params": {}}, "must change"),
        ("scores", lambda config: {"inputs": {}}, "must change"),
        ("instances", lambda config: {"params": {"beam": config.decoding.beam_size}}, "must stay"),
    ],
)
def test_the_oracle_finds_a_wrong_fingerprint(study, declaration, changes, verdict):
    """Positive controls: a fingerprint without a parameter, without its inputs, and with a superfluous parameter."""

    def fingerprint(jobs, artifact):
        is_wrong = artifact.declaration == declaration
        return (replace(artifact, **changes(jobs.config)) if is_wrong else artifact).fingerprint

    studies = [Jobs(merge(study, {"decoding": {"beam_size": size}})) for size in (2, 3)]
    wrong, _ = compare(*studies, fingerprint=fingerprint)
    assert {(name, kind) for name, _, kind in wrong} == {(declaration, verdict)}


@pytest.mark.slow
def test_each_key_reruns_what_its_value_changes(study):
    tried = set()
    for values in (study, read_config_file(CONTROLLED)):
        wrong, idle = try_keys(values, tried)
        assert wrong == []
        assert idle <= IDLE
    assert len(tried) > 200


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted((ROOT / "config").rglob("*.yaml")), ids=lambda file: file.stem)
def test_each_value_of_shipped_studies(file):
    class EachRow(set):
        """Keys in all rows, for example in every system, are tried."""

        def __contains__(self, key):
            return False

    wrong, _ = try_keys(read_config_file(file), EachRow())
    assert wrong == []
