"""The catalog of published models: where their files come from, and what may be done with them.

The entries are data: `models.yaml`. Files are fetched in the same way as corpora (`docmt.corpora.fetching`).
"""

import functools
from importlib import resources
from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field, model_validator

from docmt.corpora.catalog import SourceFile
from docmt.errors import UserError
from docmt.settings import Settings, nearest

CONFIG = "config.json"
"""The file that marks a folder as complete: it is fetched last."""


class ModelEntry(Settings):
    """One published model."""

    title: str
    """A one-line description."""
    languages: list[str]
    """Source and target language; for models of many languages all of them, or none listed."""
    version: str
    """The commit of its repository, which identifies the content."""
    license: str
    """The terms under which it may be used."""
    terms: Literal["open", "noncommercial", "licensed"]
    """`open`: use and share under the license; `noncommercial`: the same for non-commercial use only; `licensed`:
    a license must be accepted first."""
    megabytes: int
    """Size of all files together, about."""
    url: str | None = None
    """The address of each file, with `{version}` and `{file}`; null if no address serves it."""
    obtain: str | None = None
    """For a model that no address serves: what to obtain, and where."""
    files: list[str] = Field(min_length=1)
    """The files besides config.json."""
    sha256: dict[str, str] = {}
    """Checksums of files, where they are published."""

    @model_validator(mode="after")
    def _files_fit(self) -> "ModelEntry":
        if other := sorted(self.sha256.keys() - {*self.files, CONFIG}):
            raise ValueError(f"sha256 has {other[0]!r}, which is not under `files`")
        self.sources()
        return self

    @property
    def pair(self) -> tuple[str, str] | None:
        """Source and target language of a model that has no others."""
        return (self.languages[0], self.languages[1]) if len(self.languages) == 2 else None

    @property
    def kind(self) -> Literal["download", "manual"]:
        """As for corpora: `manual` if the user has to obtain it."""
        return "download" if self.url else "manual"

    def sources(self) -> dict[str, SourceFile]:
        """Its files, config.json last. Raises ValueError without addresses and `obtain`."""
        found = {}
        for name in (*self.files, CONFIG):
            urls = [self.url.format(version=self.version, file=name)] if self.url else []
            # No file is larger than all together; twice, because the size is rounded.
            limit = {"most_bytes": 2_000_000 * self.megabytes}
            values = {"addresses": [{"url": url} for url in urls], "obtain": self.obtain} | limit
            found[name] = SourceFile.model_validate(values | {"sha256": self.sha256.get(name)})
        return found


@functools.cache
def load_models() -> dict[str, ModelEntry]:
    """All models of the catalog by name."""
    text = (resources.files("docmt.models.published") / "models.yaml").read_text(encoding="utf-8")
    rows = yaml.safe_load(text)
    return {name: ModelEntry.load(row, where=f"models.yaml: {name}") for name, row in rows.items()}


def find_model(name: str) -> ModelEntry:
    """A model by name."""
    models = load_models()
    if name not in models:
        raise UserError(f"no model {name!r} in the catalog; {nearest(name, list(models))}")
    return models[name]


def is_published(name: str) -> bool:
    """Whether a name given in place of a folder is one of the catalog; a folder of that name comes first."""
    return name in load_models() and not Path(name).is_dir()


def study_folder(name: str) -> str:
    """The folder of a model of the catalog in a study."""
    return f"resources/models/{name}/{find_model(name).version}"


def published_folder(name: str) -> str:
    """The folder that a study reads: its own for a model of the catalog; all other names are folders themselves."""
    return study_folder(name) if is_published(name) else name


def fetch_model(name: str, out: Path, *, mirror: Path | None = None) -> dict[str, str]:
    """Put the files of a model into the folder `out`; returns name → origin."""
    from docmt.corpora.fetching import fetch_files  # a study only asks for names and folders

    entry = find_model(name)
    return fetch_files(entry.sources(), out, where=f"model {name}", mirror_folder=f"models/{name}", mirror=mirror)
