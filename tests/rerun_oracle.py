"""An oracle for reruns, and changes of configuration keys for tests of it.

The oracle does not read fingerprints. It renders command lines of jobs from the text of their rules, without parts that
change no content: input paths, options that Snakemake does not record, threads, devices and logs. A job must run again
if this command line, or the content or producer of an input, changed.
"""

import functools
import re
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

from pydantic import BaseModel
from smoke_study import ROOT, StudyView

from docmt.config.artifacts.base import DECLARATIONS, UserFile
from docmt.config.loading import load_config
from docmt.config.plan import Plan

RULE = re.compile(
    r"^(?:use rule (?P<base>\w+) as (?P<twin>\w+) with|rule (?P<rule>\w+)):\n(?P<body>(?:    .*\n|\n)*)", re.M
)
PARAMETER = re.compile(r"^        (\w+)=(plan\.(\w+)\([^()]*\)),", re.M)
FIELD = re.compile(r"\{(\w+)(?:\.(\w+))?(?::q)?\}")
TAKE_NAMES_FROM_PATHS = re.compile(r"docmt (instances count|evaluate run|evaluate difference|report (?!cases))")


@functools.cache
def commands():
    """Parameters, with their plan methods, and commands of all rules."""
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
    """Jobs of a study, with a digest of their content."""

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
        """Rule that makes an artifact, or None for user-supplied trees and gold trees of a suite."""
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
        names = DECLARATIONS[artifact.declaration].wildcard_names
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
    """Artifacts on which the oracle and the fingerprints disagree, and changed artifacts."""
    wrong, changed = [], []
    for key in before.artifacts.keys() & after.artifacts.keys():
        one, other = before.artifacts[key], after.artifacts[key]
        is_changed = before.digest(one) != after.digest(other)
        if is_changed != (fingerprint(before, one) != fingerprint(after, other)):
            wrong.append((*key, "must change" if is_changed else "must stay"))
        if is_changed:
            changed.append(key)
    return wrong, changed


def other_values(annotation, value):
    """Other possible values for a key."""
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
    """Configuration keys with their paths, annotations and values."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        rows = value.items() if isinstance(value, dict) else [(None, value)]
        for row, inner in rows:
            inner_path = (*path, name) if row is None else (*path, name, row)
            if isinstance(inner, BaseModel):
                yield from keys(inner, inner_path)
            elif not isinstance(inner, dict):
                yield inner_path, field.annotation, inner


def nested(path, value):
    """A configuration with only one value."""
    for name in reversed(path):
        value = {name: value}
    return value
