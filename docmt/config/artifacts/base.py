"""Artifacts (files under one declaration) and their graph."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec

from docmt.commands import as_argument
from docmt.config.schema import Config
from docmt.config.user_files import content_digest
from docmt.current_run import planned_digest
from docmt.errors import UserError
from docmt.provenance import fingerprint

STAGE_VERSIONS = {
    "corpora": 1,
    "text": 1,
    "discourse": 1,
    "instances": 1,
    "training": 3,
    "decoding": 1,
    "evaluation": 2,
    "report": 1,
}
"""Stage versions, in order. If code changes a stage's output, raise the number, and studies will rebuild it."""


@dataclass(frozen=True)
class Artifact:
    """Files that one declaration describes.

    Attributes:
        files: paths.
        inputs: rule inputs, by name.
        params: everything else that determines the content, by name. Snakemake records the parameters of a rule.
        options: command options that do not change the content, such as devices, or names of the inputs' files.
        is_kept: False for intermediate text.
        reads_paths: True if the command takes names, for example of systems, from the paths of its inputs.
        declaration, wildcards, stage, rules: name of the declaration with values of its wildcards, stage, and
            alternative rules that make the files (set by `artifact`).
    """

    files: Sequence[str]
    inputs: "Mapping[str, Artifact | Sequence[Artifact]]" = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    is_kept: bool = True
    reads_paths: bool = False
    declaration: str = ""
    wildcards: tuple[Any, ...] = ()
    stage: str = ""
    rules: tuple[str, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """Short hash of the stage's version, the parameters, and the fingerprints of all inputs."""
        inputs = {}
        for name in self.inputs:
            inputs[name] = [source.fingerprint for source in self.sources(name)]
        paths = []
        if self.reads_paths:
            paths = [source.files for source in self.sources() if not isinstance(source, UserFile)]
        # A renamed declaration, parameter or input changes the hash, and so does a new input that is empty. All studies
        # then run these jobs again, trainings included: rename only together with a stage's version.
        return fingerprint([self.declaration, STAGE_VERSIONS[self.stage], as_argument(self.params), inputs, paths])

    @property
    def file(self) -> str:
        """Path of the only file."""
        (path,) = self.files
        return path

    def select(self, *suffixes: str) -> "Artifact":
        """Return the same artifact with only the files whose names end in one of the suffixes."""
        return replace(self, files=[path for path in self.files if path.endswith(suffixes)])

    def sources(self, name: str | None = None) -> "Iterator[Artifact]":
        """Yield the rule inputs with one name, or all."""
        for key, value in self.inputs.items():
            if name in (None, key):
                if isinstance(value, Artifact):
                    yield value
                else:
                    yield from value

    def input_files(self, name: str | None = None) -> list[str]:
        """Return the paths for `sources`."""
        files: list[str] = []
        for source in self.sources(name):
            files += source.files
        return files


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
        """SHA-256 of the content. In a job, this is the content when the run was planned."""
        digest = planned_digest(Path(self.file))
        if digest:
            return digest
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


class Study:
    """A configuration, with the artifacts that have been declared for it."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.declared: dict[tuple[Any, ...], Artifact] = {}


P = ParamSpec("P")


@dataclass(frozen=True)
class Declaration(Generic[P]):
    """A function that declares an artifact of a study.

    Attributes:
        declare: the function. Its arguments after the study are wildcards in the rules.
        rules: rules that make the files.
        stage: the rules' stage (`workflow/rules/{stage}.smk`).
    """

    declare: Callable[Concatenate[Study, P], Artifact]
    rules: tuple[str, ...]
    stage: str

    def __call__(self, study: Study, *args: P.args, **kwargs: P.kwargs) -> Artifact:
        """Return the artifact. It is cached, because artifacts share their inputs."""
        name = self.declare.__name__
        wildcards = (*args, *kwargs.values())
        key = (name, *wildcards)
        if key not in study.declared:
            artifact = self.declare(study, *args, **kwargs)
            if not artifact.stage:  # otherwise, another function has declared it
                artifact = replace(artifact, declaration=name, wildcards=wildcards, stage=self.stage, rules=self.rules)
            study.declared[key] = artifact
        return study.declared[key]

    @property
    def wildcard_names(self) -> list[str]:
        """Names of the function's arguments after the study."""
        return list(inspect.signature(self.declare).parameters)[1:]


DECLARATIONS: dict[str, Declaration[...]] = {}
"""Declarations by name, in workflow order."""
RULES: dict[str, list[str]] = {stage: [] for stage in STAGE_VERSIONS}
"""Rules by stage, in workflow order."""


def artifact(*rules: str, stage: str) -> Callable[[Callable[Concatenate[Study, P], Artifact]], Declaration[P]]:
    """Decorate a function that declares an artifact, and add it to `DECLARATIONS` (see `Declaration`)."""

    def register(declare: Callable[Concatenate[Study, P], Artifact]) -> Declaration[P]:
        declaration = Declaration(declare, rules, stage)
        DECLARATIONS[declare.__name__] = declaration
        RULES[stage] += rules
        return declaration

    return register


def ancestors(final_outputs: Iterable[Artifact]) -> Iterator[Artifact]:
    """Yield `final_outputs` and all artifacts that they depend on, without duplicates."""
    # The class is part of the key, because a user-supplied file and the trees read from it have the same path.
    seen: set[tuple[type, *tuple[str, ...]]] = set()
    waiting = list(final_outputs)
    while waiting:
        artifact = waiting.pop()
        key = (type(artifact), *artifact.files)
        if key not in seen:
            seen.add(key)
            yield artifact
            waiting += artifact.sources()


def without_duplicates(artifacts: Iterable[Artifact]) -> list[Artifact]:
    """Return artifacts without duplicates, in order. For example, several scores are in one file."""
    return list({tuple(artifact.files): artifact for artifact in artifacts}.values())
