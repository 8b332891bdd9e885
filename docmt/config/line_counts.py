"""Check of user-supplied corpora and trees, and of outputs and references against test sets, before the study runs."""

import itertools
import json
from collections import Counter
from pathlib import Path

from docmt import paths
from docmt.config.artifacts.base import Study
from docmt.config.artifacts.corpora import dataset_split
from docmt.config.artifacts.study import all_artifacts
from docmt.config.references import readable_corpus
from docmt.corpora.catalog import ReadableCorpus
from docmt.corpora.documents import DocumentIndex, index_path, text_path
from docmt.corpora.file_patterns import matching_files
from docmt.corpora.splits import convert_suite, read_split
from docmt.corpora.suite_items import read_contrastive
from docmt.discourse.discourse_documents import iterate_discourse
from docmt.errors import UserError
from docmt.evaluation.contrastive_accuracy import read_user_log_probabilities
from docmt.evaluation.hypotheses import read_user_hypotheses
from docmt.evaluation.references import read_more_references, read_reference
from docmt.evaluation.segment_scores import read_metric_scores
from docmt.files import iterate_lines
from docmt.snakemake_records import read_record

CORPUS_FOLDER = Path(".")
"""User-supplied corpus files are relative to the study folder."""
READ_BYTES = 1 << 23
"""Maximum size in bytes of splits and trees that are always read. It takes one or two seconds."""


def check_corpora(study: Study) -> None:
    """Raise UserError for user-supplied splits and suites of the study that a run could not read.

    A split above `READ_BYTES` is only read if both sides have different numbers of lines.
    """
    checked: set[tuple[str, str]] = set()
    for artifact in all_artifacts(study):
        if artifact.declaration not in ("corpus_text", "corpus_suite"):
            continue
        corpus, split, _ = artifact.wildcards
        if corpus not in study.config.corpora.custom or (corpus, split) in checked:
            continue
        checked.add((corpus, split))
        row = readable_corpus(study.config, corpus)
        where = f"config.corpora.custom.{corpus}"
        if artifact.declaration == "corpus_suite":
            convert_suite(row, split, folder=CORPUS_FOLDER, where=where)
        elif not _is_large_and_aligned(row, split):
            documents, _ = read_split(row, split, folder=CORPUS_FOLDER, languages=row.languages, where=where)
            for _ in documents:  # counts are checked after the last one
                pass


def _is_large_and_aligned(corpus: ReadableCorpus, split: str) -> bool:
    """True if files of a split are large, and both sides have as many lines, with or without empty lines."""
    files = {}
    n_bytes = 0
    for role, pattern in corpus.splits[split].files.items():
        files[role] = matching_files(Path(pattern))
        for _, path in files[role]:
            n_bytes += path.stat().st_size
    if n_bytes <= READ_BYTES:
        return False
    totals: set[int] = set()
    totals_without_empty: set[int] = set()
    for side in filter(files.__contains__, corpus.languages):
        n_lines: Counter[bool] = Counter()
        try:
            for _, path in files[side]:
                n_lines.update(bool(line.strip()) for line in iterate_lines(path))
        except UserError:  # not text, which the reader accepts or refuses
            return False
        totals.add(n_lines.total())
        totals_without_empty.add(n_lines[True])
    # Numbers of empty lines between documents can differ.
    return len(totals) <= 1 or len(totals_without_empty) == 1


def check_trees(study: Study) -> None:
    """Raise UserError for malformed user-supplied trees of the study, or trees of documents in other splits.

    In a file above `READ_BYTES`, only the first document is read.
    """
    for artifact in all_artifacts(study):
        if artifact.declaration != "document_trees":
            continue
        dataset, _, part = artifact.wildcards
        references = study.config.datasets[dataset].parallel_parts().get(part, [])  # none of a suite
        prefixes = tuple(f"{reference.replace('/', '.')}/" for reference in references)
        for file in map(Path, artifact.input_files("user_file")):
            n_read = 1 if file.stat().st_size > READ_BYTES else None
            for document in itertools.islice(iterate_discourse(file), n_read):
                if prefixes and not document.id.startswith(prefixes):
                    raise UserError(
                        f"{file}: document {document.id!r}: the ids of {dataset}/{part} begin with "
                        f"{' or '.join(prefixes)}: take them from {part}.documents.tsv"
                    )


def check_line_counts(study: Study) -> None:
    """Raise UserError for outputs, references or external scores with another number of lines than their test set.

    Test sets from user-supplied files are read. Other test sets are only known when the study has prepared them.
    """
    config = study.config
    for dataset, row in config.datasets.items():
        for test in row.test:
            key = f"{dataset}/{test}"
            outputs = []
            for system in config.systems.values():
                if key in system.hypotheses:
                    outputs.append(system.hypotheses[key])
            references = [Path(file) for file in row.references.get(test, ())]
            scores: dict[str, list[tuple[str, Path]]] = {}
            for metric, tests in config.evaluation.external.items():
                scores[metric] = []
                for system, file in tests.get(key, {}).items():
                    scores[metric].append((system, Path(file)))
            if not outputs and not references and not any(scores.values()):
                continue
            content = _read_test(study, dataset, test)
            if content is None:
                continue
            index, reference = content
            read_more_references(references, index, reference)
            for file in outputs:
                read_user_hypotheses(Path(file), index, reference, tgt_lang=row.tgt_lang)
            for metric, files in scores.items():
                read_metric_scores(metric, files, index)
        for suite in row.suite_names():
            key = f"{dataset}/{suite}"
            corpus, split = row.suite_reference(suite).split("/")
            systems = [system for system in config.systems.values() if key in system.log_probabilities]
            if systems and corpus in config.corpora.custom:
                where = f"config.corpora.custom.{corpus}"
                converted, _ = convert_suite(readable_corpus(config, corpus), split, folder=CORPUS_FOLDER, where=where)
                items = [read_contrastive(item, where) for item in json.loads(json.dumps(converted))]  # with lists
                for system in systems:
                    read_user_log_probabilities(Path(system.log_probabilities[key]), items)


def _read_test(study: Study, dataset: str, test: str) -> tuple[DocumentIndex, list[str]] | None:
    """Return document index and target side of a test set, or None if they are not known yet."""
    config = study.config
    row = config.datasets[dataset]
    split = f"test_{test}"
    names = [reference.split("/") for reference in row.test[test]]
    if split not in row.filters and all(corpus in config.corpora.custom for corpus, _ in names):
        ids: list[str] = []
        lengths: list[int] = []
        sentences: list[str] = []
        for corpus, name in names:
            where = f"config.corpora.custom.{corpus}"
            documents, _ = read_split(
                readable_corpus(config, corpus), name, folder=CORPUS_FOLDER, languages=row.languages, where=where
            )
            for document in documents:
                ids.append(f"{corpus}.{name}/{document.id}")
                lengths.append(len(document.tgt))
                sentences += document.tgt
        return DocumentIndex(tuple(ids), tuple(lengths)), sentences
    prepared = dataset_split(study, dataset, split)
    prefix = Path(paths.SPLIT.format(dataset=dataset, languages="-".join(row.languages), split=split))
    files = [index_path(prefix), text_path(prefix, row.tgt_lang)]
    for file in files:
        # Text of an older configuration can have other sentences.
        if not file.exists() or repr(prepared.fingerprint) not in read_record(str(file)).get("params", []):
            return None
    return read_reference(prefix, languages=[row.tgt_lang])
