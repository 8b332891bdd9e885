"""The catalog of published models: download addresses, licenses and languages.

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
"""The file that marks a folder as complete, because it is fetched last."""


class ModelEntry(Settings):
    """One published model."""

    title: str
    """One-line description."""
    languages: list[str]
    """Source and target language. For a multilingual model all its languages, or an empty list."""
    version: str
    """Commit in its repository, as an identifier for the content."""
    license: str
    """License."""
    terms: Literal["open", "noncommercial", "licensed"]
    """`open`: use and sharing under the license. `noncommercial`: the same for non-commercial use only. `licensed`: a
    license must be accepted first.
    """
    megabytes: int
    """Approximate size of all files together."""
    url: str | None = None
    """Address pattern with `{version}` and `{file}`. None if the user has to obtain the files."""
    obtain: str | None = None
    """Without `url`: what to obtain, and where."""
    files: list[str] = Field(min_length=1)
    """Files in addition to config.json."""
    sha256: dict[str, str] = {}
    """Published checksums by file name."""

    @model_validator(mode="after")
    def _files_fit(self) -> "ModelEntry":
        other = sorted(self.sha256.keys() - {*self.files, CONFIG})
        if other:
            raise ValueError(f"sha256 has {other[0]!r}, which is not under `files`")
        self.sources()
        return self

    @property
    def pair(self) -> tuple[str, str] | None:
        """Source and target language for a model with one language pair, otherwise None."""
        if len(self.languages) == 2:
            return (self.languages[0], self.languages[1])
        return None

    @property
    def kind(self) -> Literal["download", "manual"]:
        """`download`, or `manual` if the user has to obtain it, as for corpora."""
        if self.url:
            return "download"
        return "manual"

    def sources(self) -> dict[str, SourceFile]:
        """Return its files, config.json last. Raises ValueError if the model has neither a URL nor `obtain`."""
        files = {}
        for name in (*self.files, CONFIG):
            urls = []
            if self.url:
                urls = [self.url.format(version=self.version, file=name)]
            # No file is larger than all files together. Twice that, because the size is rounded.
            limit = {"most_bytes": 2_000_000 * self.megabytes}
            values = {"addresses": [{"url": url} for url in urls], "obtain": self.obtain} | limit
            files[name] = SourceFile.model_validate(values | {"sha256": self.sha256.get(name)})
        return files


@functools.cache
def load_models() -> dict[str, ModelEntry]:
    """Read all models in the catalog, by name."""
    text = (resources.files("docmt.models.published") / "models.yaml").read_text(encoding="utf-8")
    rows = yaml.safe_load(text)
    return {name: ModelEntry.load(row, where=f"models.yaml: {name}") for name, row in rows.items()}


def find_model(name: str) -> ModelEntry:
    """Return a model by name. Raises UserError with the nearest name if it is not in the catalog."""
    models = load_models()
    if name not in models:
        raise UserError(f"no model {name!r} in the catalog; {nearest(name, list(models))}")
    return models[name]


def is_in_catalog(name: str) -> bool:
    """True if a name in place of a folder is in the catalog. An existing folder with that name takes precedence."""
    return name in load_models() and not Path(name).is_dir()


def study_folder(name: str) -> str:
    """Return the folder for a catalog model in a study."""
    return f"resources/models/{name}/{find_model(name).version}"


def published_folder(name: str) -> str:
    """Return the folder that a study reads: `study_folder` for a catalog model, otherwise the name itself."""
    if is_in_catalog(name):
        return study_folder(name)
    return name


def fetch_model(name: str, out: Path, *, mirror: Path | None = None) -> dict[str, str]:
    """Fetch a model's files into the folder `out`. Returns the origin by file name."""
    from docmt.corpora.fetching import fetch_files  # a study only asks for names and folders

    entry = find_model(name)
    return fetch_files(entry.sources(), out, where=f"model {name}", mirror_folder=f"models/{name}", mirror=mirror)
