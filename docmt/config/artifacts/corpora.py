"""Artifacts of the corpora stage."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from docmt import paths
from docmt.config.artifacts.base import Artifact, Study, UserFile, artifact, without_duplicates
from docmt.config.references import CONTROLLED_LANGUAGES, corpus_kind, corpus_languages, readable_corpus
from docmt.config.study_rows import SENTENCES
from docmt.corpora.catalog import load_catalog
from docmt.corpora.documents import INDEX_SUFFIX as INDEX
from docmt.corpora.file_patterns import matching_files
from docmt.errors import UserError
from docmt.models.published.catalog import CONFIG, find_model, is_in_catalog, load_models, study_folder
from docmt.settings import nearest

COUNTS = ".counts.json"


@artifact("corpora_fetch", stage="corpora")
def fetched(study: Study, corpus: str, split: str) -> Artifact:
    """Mark of a split (or suite) of the catalog whose files have all been fetched."""
    entry = load_catalog()[corpus]
    # Versions become a folder's name: whatever a path cannot hold everywhere is a hyphen.
    folder = re.sub(r"[^A-Za-z0-9_.-]+", "-", entry.corpus.version)
    checks = [[name, entry.family.files[name].check] for name in entry.file_names([split])]
    return Artifact(
        [f"resources/corpora/{corpus}/{folder}/{split}.fetched"],
        params={"version": entry.corpus.version, "files": checks},
        options={"mirror": study.config.corpora.mirror},
    )


@artifact("models_fetch", stage="corpora")
def fetched_model(study: Study, published: str) -> Artifact:
    """Configuration of a published model of the catalog. It is fetched after all other files of the model."""
    sources = find_model(published).sources()
    return Artifact(
        [f"{study_folder(published)}/{CONFIG}"],
        params={"files": [[name, source.check] for name, source in sources.items()]},
        options={"mirror": study.config.corpora.mirror},
    )


@artifact("fetch_mtdata", stage="corpora")
def fetched_mtdata(study: Study, dataset_id: str) -> Artifact:
    """Text of an mtdata dataset, with the id `ID/DOCUMENTS`, for example `Statmt-europarl-10-deu-eng/doc_id`."""
    row = next(row for row in study.config.corpora.mtdata.values() if row.dataset_id == dataset_id)
    # The text does not depend on the Python that fetches it.
    settings = row.model_copy(update={"python": None})
    return Artifact([row.file], params={"settings": settings}, options={"python": row.python})


@artifact("corpora_read", "read_monolingual", stage="corpora")
def corpus_text(study: Study, corpus: str, split: str, languages: str) -> Artifact:
    """Split of a corpus in one direction, or in one language."""
    pair = languages.split("-")
    prefix = paths.CORPUS.format(corpus=corpus, languages=languages) + f"/{split}"
    return _of_corpus(study, corpus, split, _split_files(prefix, pair), languages=pair)


@artifact("convert_suite", stage="corpora")
def corpus_suite(study: Study, corpus: str, suite: str, languages: str) -> Artifact:
    """Contrastive or generative test set of a corpus."""
    file = paths.CORPUS.format(corpus=corpus, languages=languages) + f"/suites/{suite}.jsonl"
    return _of_corpus(study, corpus, suite, [file])


@artifact("controlled_generate", "generate_nested", stage="corpora")
def generated(study: Study, corpus: str) -> Artifact:
    """All splits and suites of a generated corpus, with gold trees."""
    return corpus_text(study, corpus, "train", "-".join(CONTROLLED_LANGUAGES))


def _of_corpus(study: Study, corpus: str, split: str, files: list[str], **params: Any) -> Artifact:
    kind = corpus_kind(study.config, corpus, where="config.corpora")
    params["split"] = split
    if kind == "controlled":
        return Artifact(files, params=params | {"settings": study.config.corpora.controlled[corpus]})
    row = readable_corpus(study.config, corpus)
    described = row.splits[split]
    params |= {"languages of files": row.languages, "format": row.format_of(split)}
    params["description"] = described.model_dump(mode="json", exclude={"files", "format", "documents", "sentences"})
    # Only this split, so that the command line does not change with others. It names files relative to the study.
    options = {"spec": row.model_copy(update={"splits": {split: described}}), "files": "."}
    if kind == "mtdata":
        text = fetched_mtdata(study, study.config.corpora.mtdata[corpus].dataset_id)
        return Artifact(files, {"files": text}, params, options)
    if kind == "catalog":
        mark = fetched(study, corpus, split)
        options = {"corpus": corpus, "files": mark.file.removesuffix(".fetched")}
        return Artifact(files, {"files": mark}, params, options)
    where = f"config.corpora.custom.{corpus}.splits.{split}.files"
    user_files: list[Artifact] = []
    names: list[tuple[str, str]] = []
    for role in _in_language_order(described.files, row.languages):
        name = described.files[role]
        # Names can be patterns. A pattern without matches is kept, so that it is reported as missing.
        for file_name, path in matching_files(Path(name)) or [(name, Path(name))]:
            user_files.append(UserFile.at(str(path), where=f"{where}.{role}"))
            names.append((role, file_name))
    # Names become ids of documents. Folders do not, so that files can be moved.
    return Artifact(files, {"files": user_files}, params | {"names": names}, options)


def _in_language_order(roles: Collection[str], languages: Sequence[str]) -> list[str]:
    """Return the roles with their languages in the corpus's order, so that `{de: …, en: …}` equals `{en: …, de: …}`."""
    ordered = iter(sorted((role for role in roles if role in languages), key=languages.index))
    return [next(ordered) if role in languages else role for role in roles]


@artifact("corpora_combine", "corpora_filter", "combine_monolingual", stage="corpora")
def dataset_split(study: Study, dataset: str, split: str) -> Artifact:
    """Text of a dataset's split after `filters`, with its document index."""
    row = study.config.datasets[dataset]
    languages = row.part_languages(split)
    members = [member(study, dataset, reference, split) for reference in row.all_parts()[split]]
    prefix = paths.SPLIT.format(dataset=dataset, languages="-".join(languages), split=split)
    inputs: dict[str, list[Artifact]] = {"members": members}
    # Prefixes are recorded, because ids of documents contain their names.
    params: dict[str, Any] = {"languages": languages, "inputs": list(map(_prefix, members))}
    options: dict[str, Any] = {}
    if split in row.filters:
        name = row.filters[split]
        settings = study.config.corpora.filters[name]
        inputs |= {"external": [], "tests": []}
        params["settings"] = settings.model_dump(mode="json", exclude={"external"})
        params["external corpora"] = list(settings.external)
        options["external"] = []
        for reference, path in settings.external.items():
            where = f"config.corpora.filters.{name}.external.{reference}"
            inputs["external"].append(UserFile.at(path, where=where))
            options["external"].append(f"{reference}={path}")
        if settings.max_test_overlap is not None:
            inputs["tests"] = _evaluation_splits(study, dataset)
            options["tests"] = list(map(_prefix, inputs["tests"]))
    return Artifact(_split_files(prefix, languages), inputs, params, options)


@artifact(stage="corpora")
def dataset_suite(study: Study, dataset: str, suite: str) -> Artifact:
    """Contrastive or generative test set of a dataset."""
    row = study.config.datasets[dataset]
    corpus, name = row.suite_reference(suite).split("/")
    return corpus_suite(study, corpus, name, "-".join(row.languages))


@artifact("count_overlap", stage="corpora")
def overlap(study: Study, dataset: str) -> Artifact:
    """Counts of sentences and documents that occur in both training and test data of a dataset."""
    training = [dataset_split(study, dataset, "train")]
    if study.config.datasets[dataset].sentences:
        training.append(dataset_split(study, dataset, SENTENCES))
    splits = {"train": training, "tests": _evaluation_splits(study, dataset)}
    params: dict[str, Any] = language_pair(study, dataset)
    for name, texts in splits.items():
        # Prefixes are recorded, because the file contains the names of the tests.
        params[name] = list(map(_prefix, texts))
    return Artifact([paths.OVERLAP.format(dataset=dataset)], splits, params)


def _evaluation_splits(study: Study, dataset: str) -> list[Artifact]:
    parts = study.config.datasets[dataset].parts()
    return [dataset_split(study, dataset, part) for part in parts if part != "train"]


def member(study: Study, dataset: str, reference: str, part: str) -> Artifact:
    """Return a dataset's corpus split, in the dataset's direction if it is parallel."""
    name, split = reference.split("/")
    languages = corpus_languages(study.config, name)
    row = study.config.datasets[dataset]
    if name not in study.config.corpora.controlled and set(languages) == set(row.languages):
        languages = row.languages
    read = corpus_text(study, name, split, "-".join(languages))
    return read.select(*(f".{lang}" for lang in row.part_languages(part)), INDEX)


def published_files(study: Study, name: str, names: Sequence[str], *, where: str) -> list[Artifact]:
    """Return published model files, from the user's folder or fetched from the catalog.

    `names` are file name patterns.
    """
    if is_in_catalog(name):
        return [fetched_model(study, name)]
    if not Path(name).is_dir():
        hint = nearest(name, list(load_models()))
        raise UserError(f"{where}: {name}: not a folder in {Path.cwd()}, and not a model in the catalog; {hint}")
    files: list[Path] = []
    for pattern in names:
        files += Path(name).glob(pattern)
    # config.json is first for all weight names, because the rule `train` derives the folder from it.
    files.sort(key=lambda path: (path.name != CONFIG, path))
    # Without any match, the first name is returned, so that `UserFile.check` reports it as missing.
    return [UserFile.at(path.as_posix(), where=where) for path in files or [Path(name, names[0])]]


def text_counts(study: Study) -> list[Artifact]:
    """Return the counts of splits that are read from files or filtered."""
    texts: list[Artifact] = []
    for dataset, row in study.config.datasets.items():
        for part, references in row.all_parts().items():
            for reference in references:
                if reference.split("/")[0] not in study.config.corpora.controlled:
                    texts.append(member(study, dataset, reference, part))
        texts += [dataset_split(study, dataset, part) for part in row.filters]
    return without_duplicates(replace(text, files=[_prefix(text) + COUNTS]) for text in texts)


def language_pair(study: Study, dataset: str) -> dict[str, str]:
    """Return a dataset's language options."""
    row = study.config.datasets[dataset]
    return {"src_lang": row.src_lang, "tgt_lang": row.tgt_lang}


def _split_files(prefix: str, languages: Sequence[str]) -> list[str]:
    return [f"{prefix}.{end}" for end in (*languages, INDEX[1:])]


def _prefix(text: Artifact) -> str:
    (index,) = text.select(INDEX).files
    return index.removesuffix(INDEX)
