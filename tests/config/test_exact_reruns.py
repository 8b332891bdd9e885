"""Jobs run again exactly if their command line, or the content or producer of an input, changed.

The oracle does not read fingerprints. It renders the command line of each job from the text of its rule, without what
changes no content: paths of inputs, options that Snakemake does not record, threads, devices and logs.
"""

import functools
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
from pydantic import BaseModel
from smoke_study import ROOT, SMOKE, StudyView

from docmt.config.artifacts.base import ARTIFACTS, UserFile
from docmt.config.loading import load_config, merge, read_config_file
from docmt.config.plan import Plan
from docmt.errors import UserError

RULE = re.compile(
    r"^(?:use rule (?P<base>\w+) as (?P<twin>\w+) with|rule (?P<rule>\w+)):\n(?P<body>(?:    .*\n|\n)*)", re.M
)
PARAMETER = re.compile(r"^        (\w+)=(plan\.(\w+)\([^()]*\)),", re.M)
FIELD = re.compile(r"\{(\w+)(?:\.(\w+))?(?::q)?\}")
TAKE_NAMES_FROM_PATHS = re.compile(r"docmt (instances count|evaluate run|evaluate difference|report (?!cases))")
CONTROLLED = ROOT / "config/examples/controlled/controlled_crosstask.yaml"
IDLE = {
    "corpora.custom.mine.splits.all.documents",  # expected counts
    "corpora.custom.mine.splits.all.sentences",
    "discourse.trees.parsed.n_shards",
    "evaluation.comet.batch_size",
    "evaluation.comet.gpus",
    "evaluation.comet.program",
    "training.finetune.loggers",
    "training.scratch.loggers",
    "training.pretrain.loggers",
}
"""Keys that change no content."""


@functools.cache
def commands():
    """The parameters, with their methods of the plan, and the command of each rule."""
    rules = {}
    for file in sorted((ROOT / "workflow/rules").glob("*.smk")):
        for match in RULE.finditer(file.read_text(encoding="utf-8")):
            if match["base"]:
                rules[match["twin"]] = rules[match["base"]]
                continue
            parameters = {name: (text, method) for name, text, method in PARAMETER.findall(match["body"])}
            shell = match["body"].partition("    shell:\n")[2]
            rules[match["rule"]] = (parameters, "".join(re.findall(r'^        "(.*)"$', shell, re.M)))
    return rules


class Jobs:
    """The jobs of a study, with a digest of what each would make."""

    def __init__(self, values):
        self.config = load_config(values)
        self.plan = Plan(self.config)
        view = StudyView(self.config)
        view.declared = self.plan.study.declared
        artifacts = view.artifacts
        for file in (artifact for artifact in artifacts if isinstance(artifact, UserFile)):
            file.check()
        self.artifacts = {
            (artifact.declaration, artifact.wildcards): artifact for artifact in artifacts if artifact.rules
        }
        self.known = {}

    def rule(self, artifact):
        """The rule that makes an artifact, or None for a user's trees and the gold trees of a suite."""
        of_corpus = artifact.declaration in ("corpus_text", "corpus_suite")
        if of_corpus and artifact.wildcards[0] in self.config.corpora.controlled:
            return "controlled_generate"
        if artifact.declaration == "dataset_split":
            return "corpora_filter" if "settings" in artifact.params else "corpora_combine"
        if artifact.declaration == "document_trees":
            named = {"segmenter": "annotate", "inputs": "merge_trees"}
            return next((rule for name, rule in named.items() if name in artifact.inputs), None)
        return next(iter(artifact.rules), None)

    def command(self, rule, artifact):
        parameters, shell = commands()[rule]
        names = ARTIFACTS[artifact.declaration].wildcard_names
        wildcards = dict(zip(names, artifact.wildcards, strict=True))
        languages = wildcards.get("languages", "").split("-")
        wildcards |= dict(
            zip(("src", "tgt") if len(languages) > 1 else ("lang",), languages, strict=False) if languages[0] else {}
        )

        def render(match):
            kind, name = match.groups()
            if kind == "wildcards":
                return str(wildcards.get(name, name))
            text, method = parameters.get(name, ("", "")) if kind == "params" else ("", "")
            if method not in ("settings", "param", "params"):
                return f"{kind}.{name}"
            return str(eval(text, {"plan": self.plan})(SimpleNamespace(items=wildcards.items)))

        return FIELD.sub(render, shell)

    def digest(self, artifact):
        key = (artifact.declaration, artifact.wildcards, artifact.file if isinstance(artifact, UserFile) else "")
        if key not in self.known:
            self.known[key] = hash(self.content(artifact))
        return self.known[key]

    def content(self, artifact):
        if isinstance(artifact, UserFile):
            return Path(artifact.file).read_bytes()
        rule = self.rule(artifact)
        command = self.command(rule, artifact) if rule else ""
        inputs = []
        for name in artifact.inputs:
            for source in artifact.sources(name):
                paths = tuple(source.files) if TAKE_NAMES_FROM_PATHS.search(command) else ()
                inputs.append((name, self.digest(source), () if isinstance(source, UserFile) else paths))
        # COMET's settings name its model and devices, and only the context changes its scores.
        return command, artifact.params["context"] if rule == "evaluate_comet" else None, tuple(inputs)


def compare(before, after, fingerprint=lambda jobs, artifact: artifact.fingerprint):
    """The artifacts that the oracle and the fingerprints disagree on, and the artifacts that changed."""
    wrong, changed = [], []
    for key in before.artifacts.keys() & after.artifacts.keys():
        one, other = before.artifacts[key], after.artifacts[key]
        is_changed = before.digest(one) != after.digest(other)
        if is_changed != (fingerprint(before, one) != fingerprint(after, other)):
            wrong.append((*key, "must change" if is_changed else "must stay"))
        if is_changed:
            changed.append(key)
    return wrong, changed


def others(annotation, value):
    """Other values to try for a key."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value * 2, value - 1, value + 8)
    elif isinstance(value, float):
        yield from (value + 0.1, value + 0.01, value / 2, value * 2)
    words = [word for part in (annotation, *get_args(annotation)) for word in get_args(part)]
    yield from (word for word in words if isinstance(word, str) and word != value)
    if value is None:
        yield from (3, 0.5, True, 64)
    if isinstance(value, str):
        yield f"{value} x"
    if isinstance(value, list) and value:
        yield value[:-1]


def keys(section, path=()):
    """Each key in a configuration with its place, its annotation and its value."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        rows = value.items() if isinstance(value, dict) else [(None, value)]
        for row, inner in rows:
            place = (*path, name) if row is None else (*path, name, row)
            if isinstance(inner, BaseModel):
                yield from keys(inner, place)
            elif not isinstance(inner, dict):
                yield place, field.annotation, inner


def placed(place, value):
    for name in reversed(place):
        value = {name: value}
    return value


def rich_values():
    """The smoke study with a corpus of files, filters, COMET, CXMI and an external system."""
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
                "controlled": {
                    "train": ["controlled/train", "mine/all"],
                    "filters": {"train": "web"},
                    "references": {"controlled": ["more.de"]},
                }
            },
            "systems": {"given": {"hypotheses": {"controlled/controlled": "given.de"}}},
            "evaluation": {"metrics": ["s-BLEU", "d-BLEU (instances)", "CXMI"], "comet": {"checkpoint": "comet.ckpt"}},
        },
    )


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return rich_values()


def try_keys(values, seen):
    """Change each key that no other configuration has had. Return disagreements, and keys that changed no job."""
    before = Jobs(values)
    wrong, idle = [], set()
    for place, annotation, value in keys(before.config):
        key = ".".join(part for part in place if part not in before.config.systems or part == place[-1])
        if key in seen:
            continue
        for other in others(annotation, value):
            try:
                after = Jobs(merge(values, placed(place, other)))
            except (UserError, OSError):
                continue
            seen.add(key)
            disagreements, changed = compare(before, after)
            wrong += [(".".join(place), value, other, *disagreement) for disagreement in disagreements]
            if not changed:
                idle.add(".".join(place))
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


def test_each_key_reruns_what_its_value_changes(study):
    seen = set()
    for values in (study, read_config_file(CONTROLLED)):
        wrong, idle = try_keys(values, seen)
        assert wrong == []
        assert idle <= IDLE
    assert len(seen) > 200
