"""Artifacts (files under one declaration) and their graph."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from docmt.config.schema import Config
from docmt.config.user_files import content_digest
from docmt.errors import UserError
from docmt.provenance import fingerprint
from docmt.settings import Settings

STAGE_VERSIONS = {
    "corpora": 3,
    "text": 1,
    "discourse": 2,
    "instances": 2,
    "training": 4,
    "decoding": 3,
    "evaluation": 4,
    "report": 7,
}
"""Stage versions, in order. If code changes a stage's output, raise the number, and studies will rebuild it."""


@dataclass(frozen=True)
class Artifact:
    """Files that one declaration describes.

    Attributes:
        files: paths.
        parts: settings and artifacts that determine the content, hashed in this order. Inputs that another part covers
            are left out.
        inputs: rule inputs, by name. A name without an input in the rule is only hashed.
        params: command options that no wildcard or file determines, by name.
        is_kept: False for intermediate text.
        stage: the rules' stage (set by `artifact`).
        rules: alternative rules that make the files (set by `artifact`).
    """

    files: Sequence[str]
    parts: Sequence[Any] = ()
    inputs: Mapping[str, "Artifact | str | Sequence[Artifact | str]"] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    is_kept: bool = True
    stage: str = ""
    rules: tuple[str, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """Short hash of the relevant settings and everything upstream."""
        return fingerprint([self.stage, STAGE_VERSIONS[self.stage], *map(_hashable, self.parts)])

    @property
    def file(self) -> str:
        """Path of the only file."""
        (path,) = self.files
        return path

    def select_suffix(self, suffix: str) -> "Artifact":
        """Return the same artifact with only the files whose names end in `suffix`."""
        return replace(self, files=[path for path in self.files if path.endswith(suffix)])

    def sources(self, name: str | None = None) -> Iterator["Artifact | str"]:
        """Yield the rule inputs with one name, or all."""
        for key, value in self.inputs.items():
            if name in (None, key):
                yield from [value] if isinstance(value, Artifact | str) else value

    def input_files(self, name: str | None = None) -> list[str]:
        """Return the paths for `sources`."""
        return [
            path for source in self.sources(name) for path in ([source] if isinstance(source, str) else source.files)
        ]


@dataclass(frozen=True)
class UserFile(Artifact):
    """A user-supplied file. Its fingerprint is the content checksum, independent of name and times.

    Attributes:
        where: config key that names the file.
    """

    where: str = ""

    @classmethod
    def at(cls, path: str, *, where: str) -> "UserFile":
        """Declare a file by its path, relative to the study folder."""
        return cls([path], is_kept=False, stage="corpora", where=where)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content."""
        self.check()
        return content_digest(Path(self.file))

    def check(self) -> None:
        """Raise UserError when the file is missing or is a folder."""
        if not Path(self.file).is_file():
            problem = "is a folder, not a file" if Path(self.file).is_dir() else "no such file"
            raise UserError(
                f"{self.where}: {self.file}: {problem} (paths are relative to {Path.cwd()}: change to the folder of "
                "the study)"
            )


def _hashable(part: Any) -> Any:
    if isinstance(part, Artifact):
        return part.fingerprint
    if isinstance(part, Settings):
        return part.model_dump(mode="json")
    return [_hashable(item) for item in part] if isinstance(part, list | tuple) else part


Owner = TypeVar("Owner", bound="Declarations")
P = ParamSpec("P")
Declaration = Callable[Concatenate[Owner, P], Artifact]


def artifact(*rules: str, stage: str) -> Callable[[Declaration[Owner, P]], Declaration[Owner, P]]:
    """Decorate a method that declares an artifact.

    Args:
        rules: rules that make the files.
        stage: the rules' stage (`workflow/rules/{stage}.smk`).

    The method's arguments are wildcards in these rules. Artifacts are cached.
    """

    def mark(declare: Declaration[Owner, P]) -> Declaration[Owner, P]:
        @functools.wraps(declare)
        def once(self: Owner, *args: P.args, **kwargs: P.kwargs) -> Artifact:
            key = (declare.__name__, args, tuple(sorted(kwargs.items())))
            # Cached, because artifacts share their inputs, and fingerprints depend on all inputs.
            if key not in self.declared:
                made = declare(self, *args, **kwargs)
                self.declared[key] = made if made.stage else replace(made, stage=stage, rules=rules)
            return self.declared[key]

        once.declares = (stage, rules)  # type: ignore[attr-defined]  # read by `rules_by_stage`
        return once

    return mark


def rules_by_stage(declarations: type["Declarations"]) -> dict[str, list[str]]:
    """Return rules by stage, in declaration order."""
    found: dict[str, list[str]] = {stage: [] for stage in STAGE_VERSIONS}
    # The inheritance order is the stage order, starting at the base class.
    for cls in reversed(declarations.__mro__):
        for method in vars(cls).values():
            if mark := getattr(method, "declares", None):
                stage, rules = mark
                found[stage] += rules
    return found


class Declarations:
    """Artifact declarations for a study. Every stage is a subclass."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.declared: dict[Any, Artifact] = {}


def ancestors(final_outputs: Iterable[Artifact]) -> Iterator[Artifact]:
    """Yield `final_outputs` and all artifacts that they depend on, without duplicates."""
    # The class is part of the key, because a user-supplied file and the trees read from it have the same path.
    seen: set[tuple[type, *tuple[str, ...]]] = set()
    waiting = list(final_outputs)
    while waiting:
        artifact = waiting.pop()
        if (key := (type(artifact), *artifact.files)) not in seen:
            seen.add(key)
            yield artifact
            waiting += [source for source in artifact.sources() if isinstance(source, Artifact)]


def once(artifacts: Iterable[Artifact]) -> list[Artifact]:
    """Return artifacts without duplicates, in order. For example, several scores are in one file."""
    return list({tuple(artifact.files): artifact for artifact in artifacts}.values())
