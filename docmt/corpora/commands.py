"""`docmt corpora`: list, fetch, read, combine, compare and check corpora."""

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from docmt.commands import (
    MIRROR_VARIABLE,
    CommandGroup,
    Jobs,
    Mirror,
    OutFile,
    SharedFolder,
    SrcLang,
    TgtLang,
    files_by_name,
    option,
    print_table,
    settings_at,
)
from docmt.corpora.mtdata_corpus import MtdataCorpus
from docmt.corpora.settings import FilterSettings
from docmt.errors import UserError, escape_controls
from docmt.files import write_json, write_jsonl
from docmt.outputs import Output, suffixed

if TYPE_CHECKING:
    from docmt.corpora.catalog import ReadableCorpus

log = logging.getLogger(__name__)

commands = CommandGroup("corpora")

CorpusName = Annotated[str | None, option("name in the catalog.")]
Spec = Annotated[str | None, option("description of your own files (in place of --corpus) as JSON or @FILE.")]
Files = Annotated[Path, option("folder with the files as fetched.")]
OutPrefix = Annotated[Path, suffixed("documents.tsv", "counts.json", option="languages")]
Languages = Annotated[list[str], option("source and target language, or the one language of monolingual text.")]


@commands.command(name="list")
def list_corpora(*, json_output: Annotated[bool, option("print JSON instead.", name="--json")] = False) -> None:
    """Print the catalog as a table.

    Example:
        docmt corpora list
    """
    from docmt.corpora.catalog import load_catalog

    rows = []
    for name, entry in load_catalog().items():
        for split_name, split in entry.corpus.splits.items():
            row = {
                "corpus": name,
                "languages": "-".join(entry.corpus.languages),
                "split": split_name,
                "holds": entry.corpus.holds(split_name),
                "documents": split.documents,
                "sentences": split.sentences,
                "kind": entry.kind(split_name),
                "terms": entry.family.terms,
                "version": entry.corpus.version,
                "title": entry.corpus.title,
            }
            rows.append(row)
    if json_output:
        print(json.dumps(rows, ensure_ascii=False, indent=1))
    else:
        print_table(rows)


@commands.command
def fetch(*, corpus: str, splits: list[str] | None = None, out: SharedFolder, mirror: Mirror = None) -> None:
    """Download and verify a corpus, or copy it from a mirror.

    Example:
        docmt corpora fetch --corpus voita2019-suites-enru --splits test --out corpora/voita
        --mirror /folder/with/corpora

    Args:
        corpus: name in the catalog.
        splits: splits to fetch. Default: all.
        out: folder for the files, uncompressed.
    """
    from docmt.corpora.catalog import find_corpus
    from docmt.corpora.fetching import fetch_corpus

    fetch_corpus(find_corpus(corpus), out, splits=splits, mirror=mirror)


@commands.command
def fetch_mtdata(
    *,
    settings: Annotated[MtdataCorpus, settings_at("corpora.mtdata.NAME")],
    python: str | None = None,
    out: Annotated[OutFile, Output(lambda out, _: [out, out.with_suffix(".json")])],
) -> None:
    """Fetch an mtdata dataset as a table with document, source and target.

    Example:
        docmt corpora fetch-mtdata --settings '{"id":"Statmt-europarl-10-deu-eng"}' --out europarl.tsv

    Args:
        python: Python in the environment with mtdata.
    """
    from docmt.corpora.mtdata_corpus import fetch_mtdata

    fetch_mtdata(settings, out, python=python)


@commands.command
def read(
    *,
    corpus: CorpusName = None,
    spec: Spec = None,
    files: Files = Path("."),
    split: str,
    languages: Languages,
    out: OutPrefix,
) -> None:
    """Read a split, and write text, document index and counts.

    Example:
        docmt corpora read --corpus wesnoth-ende --files corpora/wesnoth --split dev --languages en de --out text/dev

    Args:
        split: split name.
        out: output prefix, for PREFIX.{lang}, PREFIX.documents.tsv and PREFIX.counts.json.
    """
    from docmt.corpora.documents import write_documents
    from docmt.corpora.splits import read_split

    described, where, origin = _described(corpus, spec, split)
    documents, counts = read_split(described, split, folder=files, languages=languages, where=where)
    write_documents(out, documents, languages=languages)
    write_json(Path(f"{out}.counts.json"), counts.as_dict(n_sides=len(languages)) | {"origin": origin})


@commands.command
def convert_suite(
    *,
    corpus: CorpusName = None,
    spec: Spec = None,
    files: Files = Path("."),
    split: str = "test",
    out: OutFile,
) -> None:
    """Convert a contrastive or generative test set to JSON lines with one item per line.

    Example:
        docmt corpora convert-suite --corpus voita2019-suites-enru --files corpora/voita --split test --out deixis.jsonl

    Args:
        split: name of the split.
    """
    from docmt.corpora.splits import convert_suite

    described, where, _ = _described(corpus, spec, split)
    items, dropped = convert_suite(described, split, folder=files, where=where)
    write_jsonl(out, items)
    for cause, n in dropped.items():
        if n:
            log.info("%s: omitted %d × %s", out, n, cause)


def _described(name: str | None, spec: str | None, split: str) -> tuple["ReadableCorpus", str, dict[str, str]]:
    """Return the corpus in `--corpus` or `--spec`, its name for messages, and its text's origin."""
    from docmt.corpora.catalog import ReadableCorpus, find_corpus

    if (name is None) == (spec is None):
        raise UserError("pass either --corpus or --spec")
    if name is not None:
        entry = find_corpus(name)
        origin = {"corpus": entry.name, "version": entry.corpus.version, "license": entry.family.license}
        return entry.corpus, entry.where, origin | {"split": split}
    corpus = ReadableCorpus.from_argument(spec or "", where="--spec")
    return corpus, "--spec", {"corpus": "files of the user", "version": "", "license": "", "split": split}


@commands.command
def combine(*, inputs: list[Path], languages: Languages, out: OutPrefix) -> None:
    """Concatenate splits. With one language, only that side is used.

    Example:
        docmt corpora combine --inputs talks/train news/train --languages en de --out ende/train

    Args:
        inputs: split prefixes.
        out: combined split's prefix.
    """
    from docmt.corpora.combining import combine

    combine(inputs, out, languages=languages)


@commands.command
def filter(
    *,
    settings: Annotated[FilterSettings, settings_at("corpora.filters")] = FilterSettings(),
    inputs: list[Path],
    languages: Languages,
    external: list[str] | None = None,
    tests: list[Path] | None = None,
    out: OutPrefix | None = None,
    show: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    jobs: Jobs = 1,
) -> None:
    """Filter sentence pairs in splits by the rules in `corpora.filters`, and concatenate the splits.

    Example:
        docmt corpora filter --inputs web/train --languages en de --out ende/train --show 20

    Args:
        inputs: split prefixes.
        external: files with a line 1 (keep) or 0 (reject) per pair, written CORPUS/SPLIT=FILE, in place of `external`
            in --settings.
        tests: development and test split prefixes, for `max_test_overlap`.
        out: filtered split's prefix. Default: only count pairs.
        show: number of example pairs to print per rule.
    """
    from docmt.corpora.combining import combine
    from docmt.corpora.documents import iterate_documents
    from docmt.corpora.filtering import DocumentFilter

    named = {}
    for reference, paths in files_by_name("--external", external, form="CORPUS/SPLIT=FILE").items():
        if len(paths) > 1:
            raise UserError(f"--external {reference}: {len(paths)} files: pass one file per split")
        named[reference] = str(paths[0])
    if named:
        settings = settings.model_copy(update={"external": named})
    if (settings.max_test_overlap is not None) != bool(tests):
        raise UserError("corpora.filters: max_test_overlap and --tests need each other: pass both or neither")
    test_sentences: set[str] = set()
    for prefix in tests or []:
        for document in iterate_documents(prefix, languages=languages[:1]):
            test_sentences.update(document.src)
    test_sentences.discard("")
    document_filter = DocumentFilter(settings, languages, test_sentences, jobs=jobs, n_examples=show)
    combine(inputs, out, languages=languages, filter=document_filter)
    for rule, examples in document_filter.examples.items():
        for document, src, tgt in examples:
            print(escape_controls(f"{rule}\t{document}\t{src}\t{tgt}", keep="\t"))
    n_failed = document_filter.dropped + document_filter.masked
    rows = [{"rule": rule, "pairs": n} for rule, n in n_failed.most_common()]
    print_table([*rows, {"rule": "pairs read", "pairs": document_filter.counts["sentences_read"]}])


@commands.command
def count_overlap(*, train: list[Path], tests: list[Path], src_lang: SrcLang, tgt_lang: TgtLang, out: OutFile) -> None:
    """Count test sentences and documents that also occur in the training data.

    Example:
        docmt corpora count-overlap --train ende/train --tests ende/test_talks ende/test_news --src-lang en
        --tgt-lang de --out overlap.json

    Args:
        train: training split prefixes.
        tests: development and test split prefixes.
    """
    from docmt.corpora.combining import write_overlap

    write_overlap(train, tests, out, languages=(src_lang, tgt_lang))


@commands.command
def check(*, corpora: list[str] | None = None, mirror: Mirror = None) -> int:
    """Read all corpora in a mirror, and compare their counts with the catalog. The exit code is 1 if they differ.

    Example:
        docmt corpora check --corpora libreoffice-help-ende wesnoth-ende --mirror /folder/with/corpora

    Args:
        corpora: corpora to check. Default: all.
    """
    from docmt.corpora.catalog import find_corpus, load_catalog
    from docmt.corpora.mirror import check_corpus

    if mirror is None:
        raise UserError(f"no mirror folder: pass --mirror DIR, or set ${MIRROR_VARIABLE}")
    if not mirror.is_dir():
        raise UserError(f"mirror {mirror}: no such folder")
    results = []
    for name in corpora or load_catalog():
        results += check_corpus(find_corpus(name), mirror)
    print_table([vars(result) for result in results])
    return int(any(result.state == "bad" for result in results))
