"""Artifacts of the corpora stage."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from docmt.config.artifacts.base import Artifact, Declarations, UserFile, artifact
from docmt.config.references import CONTROLLED_LANGUAGES, corpus_kind, corpus_languages, readable_corpus
from docmt.config.study_rows import SENTENCES
from docmt.corpora.catalog import load_catalog
from docmt.corpora.file_patterns import matching_files
from docmt.errors import UserError
from docmt.models.published.catalog import CONFIG, find_model, is_published, load_models, study_folder
from docmt.settings import nearest


class CorporaArtifacts(Declarations):
    """Corpora as fetched, read or generated, and the splits of datasets."""

    @artifact("corpora_fetch", stage="corpora")
    def fetched(self, corpus: str, split: str) -> Artifact:
        """Mark of a split (or suite) of the catalog whose files have all been fetched."""
        # Versions become a folder's name: whatever a path cannot hold everywhere is a hyphen.
        version = re.sub(r"[^A-Za-z0-9_.-]+", "-", load_catalog()[corpus].corpus.version)
        folder = f"resources/corpora/{corpus}/{version}/{split}"
        params = {"mirror": self.config.corpora.mirror}
        # Fingerprints contain the checksums of files in the folder, not their origin.
        return Artifact([f"{folder}.fetched"], params=params)

    @artifact("models_fetch", stage="corpora")
    def fetched_model(self, published: str) -> Artifact:
        """Configuration of a published model of the catalog. It is fetched after all other files of the model."""
        folder, sources = study_folder(published), find_model(published).sources()
        checks = [[name, source.check] for name, source in sources.items()]
        params = {"mirror": self.config.corpora.mirror}
        return Artifact([f"{folder}/{CONFIG}"], [published, folder, checks], params=params)

    @artifact("fetch_mtdata", stage="corpora")
    def fetched_mtdata(self, dataset_id: str) -> Artifact:
        """Text of an mtdata dataset, with the id `ID/DOCUMENTS`, for example `Statmt-europarl-10-deu-eng/doc_id`."""
        row = next(row for row in self.config.corpora.mtdata.values() if row.dataset_id == dataset_id)
        # The text does not depend on the Python that fetches it.
        params = {"settings": row.model_copy(update={"python": None}), "python": row.python}
        return Artifact([row.file], [row.id, row.documents], params=params)

    @artifact("corpora_read", "read_monolingual", stage="corpora")
    def corpus(self, corpus: str, split: str, languages: str) -> Artifact:
        """Split of a corpus in one direction, or in one language."""
        prefix = f"results/corpora/{corpus}/{languages}/{split}"
        pair = languages.split("-")
        return self._of_corpus(corpus, split, _with_index(prefix, pair), {"languages": pair})

    @artifact("convert_suite", stage="corpora")
    def corpus_suite(self, corpus: str, suite: str, languages: str) -> Artifact:
        """Contrastive or generative test set of a corpus."""
        file = f"results/corpora/{corpus}/{languages}/suites/{suite}.jsonl"
        return self._of_corpus(corpus, suite, [file], {})

    @artifact("controlled_generate", "generate_nested", stage="corpora")
    def generated(self, corpus: str) -> Artifact:
        """All splits and suites of a generated corpus, with gold trees."""
        return self.corpus(corpus, "train", "-".join(CONTROLLED_LANGUAGES))

    def _of_corpus(self, corpus: str, split: str, files: list[str], params: dict[str, Any]) -> Artifact:
        kind = corpus_kind(self.config, corpus, where="config.corpora")
        if kind == "controlled":
            settings = self.config.corpora.controlled[corpus]
            return Artifact(files, [corpus, settings], params={"settings": settings})
        row = readable_corpus(self.config, corpus)
        described = row.splits[split]
        parts: list[Any] = [row.languages, row.format, described]
        if kind == "custom":
            where = f"config.corpora.custom.{corpus}.splits.{split}.files"
            # Names can be patterns. A pattern without matches is kept, so that it is reported as missing.
            own = [
                UserFile.at(str(path), where=f"{where}.{role}")
                for role, name in described.files.items()
                for _, path in matching_files(Path(name)) or [(name, Path(name))]
            ]
            # The description names files relative to the study folder.
            params |= {"spec": row, "files": "."}
            parts = [corpus, parts, [[file.file, file] for file in own]]
            return Artifact(files, parts, {"user_files": own}, params)
        if kind == "mtdata":
            fetched = self.fetched_mtdata(self.config.corpora.mtdata[corpus].dataset_id)
            params |= {"spec": row, "files": "."}
            return Artifact(files, [corpus, parts, fetched], {"fetched": fetched}, params)
        entry = load_catalog()[corpus]
        parts += [entry.corpus.version, [entry.family.files[file].check for file in entry.file_names([split])]]
        fetched = self.fetched(corpus, split)
        params |= {"corpus": corpus, "files": fetched.file.removesuffix(".fetched")}
        return Artifact(files, [corpus, parts], {"fetched": fetched}, params)

    @artifact("corpora_combine", "corpora_filter", "combine_monolingual", stage="corpora")
    def dataset_split(self, dataset: str, split: str) -> Artifact:
        """Text of a dataset's split after `filters`, with its document index."""
        row = self.config.datasets[dataset]
        languages = row.part_languages(split)
        members = [self.member(dataset, reference, split) for reference in row.all_parts()[split]]
        parts: list[Any] = [list(languages), members]
        inputs: dict[str, Any] = {"members": members}
        params = {
            "inputs": [_prefix(member) for member in members],
            "languages": languages,
        }
        if (name := row.filters.get(split)) is not None:
            params["settings"] = chosen = self.config.corpora.filters[name]
            where = f"config.corpora.filters.{name}.external"
            inputs["external"] = [
                UserFile.at(path, where=f"{where}.{reference}") for reference, path in chosen.external.items()
            ]
            if chosen.max_test_overlap is not None:
                tests = [part for part in row.parts() if part != "train"]
                inputs["tests"] = [self.dataset_split(dataset, part) for part in tests]
                params["tests"] = [self.prefix(dataset, part) for part in tests]
            parts += [chosen.model_dump(mode="json", exclude={"external"}), inputs["external"], inputs.get("tests")]
        return Artifact(_with_index(self.prefix(dataset, split), languages), parts, inputs, params)

    @artifact(stage="corpora")
    def suite(self, dataset: str, suite: str) -> Artifact:
        """Contrastive or generative test set of a dataset."""
        row = self.config.datasets[dataset]
        corpus, name = row.suite_reference(suite).split("/")
        return self.corpus_suite(corpus, name, "-".join(row.languages))

    @artifact("count_overlap", stage="corpora")
    def overlap(self, dataset: str) -> Artifact:
        """Counts of sentences and documents that occur in both training and test data of a dataset."""
        row = self.config.datasets[dataset]
        splits = [self.dataset_split(dataset, split) for split in row.parallel_parts()]
        training = ["train", *([SENTENCES] if row.sentences else [])]
        params = {
            "train": [self.prefix(dataset, part) for part in training],
            "tests": [self.prefix(dataset, split) for split in row.parts() if split != "train"],
            **self.language_pair(dataset),
        }
        files = [f"results/{dataset}/corpora/overlap.json"]
        return Artifact(files, [splits], {"splits": splits}, params)

    def member(self, dataset: str, reference: str, part: str) -> Artifact:
        """Return a dataset's corpus split, in the dataset's direction if it is parallel."""
        corpus, split = reference.split("/")
        languages = corpus_languages(self.config, corpus)
        pair = self.config.datasets[dataset].languages
        if corpus not in self.config.corpora.controlled and set(languages) == set(pair):
            languages = pair
        wanted = self.config.datasets[dataset].part_languages(part)
        read = self.corpus(corpus, split, "-".join(languages))
        return replace(read, files=_with_index(_prefix(read), wanted))

    def published_files(self, name: str, names: Sequence[str], *, where: str) -> list[Artifact]:
        """Return published model files, from the user's folder or fetched from the catalog.

        `names` are file name patterns.
        """
        if is_published(name):
            return [self.fetched_model(name)]
        if not Path(name).is_dir():
            hint = nearest(name, list(load_models()))
            raise UserError(f"{where}: {name}: not a folder in {Path.cwd()}, and not a model in the catalog; {hint}")
        paths = (path for pattern in names for path in Path(name).glob(pattern))
        # config.json is first for all weight names, because the rule `train` derives the folder from it.
        found = [path.as_posix() for path in sorted(paths, key=lambda path: (path.name != CONFIG, path))]
        # Without any match, the first name is returned, so that `UserFile.check` reports it as missing.
        return [UserFile.at(path, where=where) for path in found or [f"{name}/{names[0]}"]]

    def counts(self) -> dict[str, str]:
        """Return count files for splits that are read from files or filtered, by dataset, corpus and split."""
        read = {
            f"{dataset}/{reference}": f"{_prefix(self.member(dataset, reference, part))}.counts.json"
            for dataset, row in self.config.datasets.items()
            for part, references in row.all_parts().items()
            for reference in references
            if reference.split("/")[0] not in self.config.corpora.controlled
        }
        return read | {
            f"{dataset}/{part}, filtered": f"{self.prefix(dataset, part)}.counts.json"
            for dataset, row in self.config.datasets.items()
            for part in row.filters
        }

    def prefix(self, dataset: str, split: str) -> str:
        """Return the path prefix for a dataset's split."""
        languages = "-".join(self.config.datasets[dataset].part_languages(split))
        return f"results/{dataset}/corpora/{languages}/{split}"

    def scoring_options(self, dataset: str, split: str) -> dict[str, str]:
        """Return the `docmt evaluate` options for a test split's text."""
        prefix, test = self.prefix(dataset, split), split.removeprefix("test_")
        return {**self.language_pair(dataset), "prefix": prefix, "test": test}

    def language_pair(self, dataset: str) -> dict[str, str]:
        """Return a dataset's language options."""
        return dict(zip(("src_lang", "tgt_lang"), self.config.datasets[dataset].languages, strict=True))


def _with_index(prefix: str, languages: Any) -> list[str]:
    return [f"{prefix}.{end}" for end in (*languages, "documents.tsv")]


def _prefix(text: Artifact) -> str:
    return text.files[-1].removesuffix(".documents.tsv")
