"""Differences between two configurations, and the jobs that a change runs again."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from docmt.config.artifacts.base import Artifact, UserFile, leading_to
from docmt.config.artifacts.report import StudyArtifacts
from docmt.config.loading import load_config
from docmt.config.schema import Config
from docmt.errors import UserError

MISSING = object()


@dataclass(frozen=True)
class Change:
    """A key whose value differs.

    Attributes:
        key: path to it, with dots.
        old: value before; `MISSING` if the key is new.
        new: value now; `MISSING` if the key is gone.
    """

    key: tuple[str, ...]
    old: Any
    new: Any

    def __str__(self) -> str:
        name = ".".join(self.key)
        if self.old is MISSING:
            return f"{name}: new"
        return f"{name}: gone" if self.new is MISSING else f"{name}: {_show(self.old)} → {_show(self.new)}"

    def apply(self, values: dict[str, Any]) -> dict[str, Any]:
        """A copy of the values with this change."""
        head, *rest = self.key
        changed = dict(values)
        if rest:
            changed[head] = Change(tuple(rest), self.old, self.new).apply(values.get(head) or {})
        elif self.new is MISSING:
            changed.pop(head, None)  # a default that was never written
        else:
            changed[head] = self.new
        return changed


def _show(value: Any) -> str:
    text = f"{value}"
    return text if len(text) <= 60 else f"{text[:57]}…"


def changed_values(old: dict[str, Any], new: dict[str, Any], *, prefix: tuple[str, ...] = ()) -> Iterator[Change]:
    """The keys in which nested mappings differ, in the order of the new one; a new or gone mapping is one change."""
    for key in dict.fromkeys([*new, *old]):
        before, after = old.get(key, MISSING), new.get(key, MISSING)
        if isinstance(before, dict) and isinstance(after, dict):
            yield from changed_values(before, after, prefix=(*prefix, key))
        elif before is MISSING or after is MISSING or before != after:
            yield Change((*prefix, key), before, after)


@dataclass(frozen=True)
class ConfigComparison:
    """What a new configuration means for a study that was made with an old one.

    Attributes:
        changes: keys that differ, each with what it alone would run again; None where the old configuration with this
            change alone is not valid.
        again: what both have and is made again.
        added: what only the new one makes.
        left: files that only the old one made: they stay in the folder.
        n_jobs: all of the new one's target `all`.
    """

    changes: list[tuple[Change, list[Artifact] | None]]
    again: list[Artifact]
    added: list[Artifact]
    left: list[str]
    n_jobs: int


def compare_configs(old: Config, new: Config) -> ConfigComparison:
    """Compare the studies of two configurations in the same folder.

    Raises UserError when a file of the user's that one of them names is missing.
    """
    before, after = StudyArtifacts(old), StudyArtifacts(new)
    known = {artifact.job: _reasons(artifact) for artifact in _made(before.all_made)}
    again, added = _differing(known, after)
    made = {file for artifact in after.all_made for file in artifact.files}
    values = old.model_dump(mode="json", exclude_unset=True)
    changes: list[tuple[Change, list[Artifact] | None]] = []
    for change in changed_values(old.model_dump(mode="json"), new.model_dump(mode="json")):
        try:
            # On top of the written keys only: a default that depends on another key follows it.
            alone = StudyArtifacts(load_config(change.apply(values)))
            changes.append((change, _differing(known, alone)[0]))
        except UserError:
            changes.append((change, None))
    left = [file for artifact in _made(before.all_made) for file in artifact.files if file not in made]
    return ConfigComparison(changes, again, added, left, sum(made.n_jobs for made in _jobs(after)))


def _made(artifacts: Iterable[Artifact]) -> list[Artifact]:
    return [artifact for artifact in artifacts if not isinstance(artifact, UserFile)]


def _jobs(study: StudyArtifacts) -> list[Artifact]:
    # Of the target `all`: tables for single systems and datasets are made only where someone asks for them.
    return list({artifact.job: artifact for artifact in _made(leading_to(study.finals))}.values())


def _reasons(artifact: Artifact) -> tuple[str, set[str]]:
    # Snakemake also runs a job again whose input files have other names.
    return artifact.fingerprint, set(artifact.input_files())


def _differing(
    known: Mapping[Any, tuple[str, set[str]]], study: StudyArtifacts
) -> tuple[list[Artifact], list[Artifact]]:
    jobs = _jobs(study)
    added = [artifact for artifact in jobs if artifact.job not in known]
    again = {
        artifact.job: artifact
        for artifact in jobs
        if artifact.job in known and known[artifact.job] != _reasons(artifact)
    }
    # What is made from these is older then.
    readers: dict[tuple[str, ...], list[Artifact]] = {}
    for reader in jobs:
        for source in reader.sources():
            if isinstance(source, Artifact) and reader.job in known:
                readers.setdefault(source.job, []).append(reader)
    waiting = [*again.values()]
    while waiting:
        for reader in readers.get(waiting.pop().job, []):
            if reader.job not in again:
                again[reader.job] = reader
                waiting.append(reader)
    # Intermediate text has been deleted: what is made from it needs it again, even if it is the same.
    waiting = [*again.values(), *added]
    while waiting:
        for source in waiting.pop().sources():
            if isinstance(source, str | UserFile) or source.is_kept or source.job in again or source in added:
                continue
            again[source.job] = source
            waiting.append(source)
    return list(again.values()), added
