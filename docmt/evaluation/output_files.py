"""Output files, and the tests that their names say."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from docmt.commands import files_by_name
from docmt.corpora.documents import split_prefixes
from docmt.errors import UserError
from docmt.evaluation.option_groups import TestFiles

FORMS = {"test": "test_NAME.jsonl", "suite": "suite_NAME.json", "generated": "generated_NAME.jsonl"}
"""Output file names by kind: on a test split, a contrastive suite, and a generative suite."""


@dataclass(frozen=True)
class TestOutputs:
    """Outputs on one test.

    Attributes:
        kind: key of `FORMS`.
        name: name of the split or suite.
        file: prefix of the split's raw text, or the suite.
        languages: source and target.
        outputs: one file per seed.
        baseline: the baseline's files.
        references: additional references of the split.
        external: files with scores of other programs by metric, one per file in `outputs` and `baseline`.
    """

    kind: str
    name: str
    file: Path
    languages: tuple[str, str]
    outputs: Sequence[Path]
    baseline: Sequence[Path] = ()
    references: Sequence[Path] = ()
    external: Mapping[str, Sequence[Path]] = field(default_factory=dict)


def group_outputs(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """Return output files by `KIND_NAME`, in order."""
    grouped: dict[str, list[Path]] = {}
    for path in paths:
        kind, _, name = path.stem.partition("_")
        if kind not in FORMS or not name:
            raise UserError(f"{path}: the file name must be {', '.join(FORMS.values())}: rename it")
        grouped.setdefault(path.stem, []).append(path)
    return grouped


def match_outputs(
    outputs: Sequence[Path], files: TestFiles, *, baseline: Sequence[Path] | None = None
) -> list[TestOutputs]:
    """Return the tests of outputs, in order of outputs, with the text `test_NAME` or the suite `NAME.jsonl`.

    Raises UserError for an output without a text, suite or (if `baseline` is not None) baseline, and the reverse.
    """
    theirs = group_outputs(baseline or ())
    splits = _by_name("--texts", ((prefix.name, prefix) for prefix in split_prefixes(files.texts)))
    named = _by_name("--suites", ((path.stem, path) for path in files.suites))
    more = files_by_name("--references", files.references, form="TEST=FILE")
    external = files_by_name("--external", files.external, form="TEST/METRIC=FILE")
    tests = []
    for part, paths in group_outputs(outputs).items():
        kind, _, name = part.partition("_")
        extra: list[Path] = []
        scores: dict[str, list[Path]] = {}
        if kind == "test":
            file = splits.pop(part, None)
            missing = f"{part}.documents.tsv in --texts"
            extra = more.pop(name, [])
            for key in list(external):
                test, _, metric = key.partition("/")
                if test == name:
                    scores[metric] = external.pop(key)
        else:
            file = named.pop(name, None)
            missing = f"{name}.jsonl in --suites"
        if file is None:
            raise UserError(f"{paths[0]}: also pass {missing}")
        if baseline is not None and part not in theirs:
            raise UserError(f"{paths[0]}: also pass the baseline's {paths[0].name} in --baseline")
        baseline_paths = theirs.pop(part, [])
        n_outputs = len(paths) + len(baseline_paths)
        for metric, score_files in scores.items():
            if len(score_files) != n_outputs:
                raise UserError(
                    f"--external {name}/{metric}: {len(score_files)} files for {n_outputs} outputs: pass one for each "
                    "output, and then one for each output of the baseline"
                )
        languages = files.src_lang, files.tgt_lang
        tests.append(TestOutputs(kind, name, file, languages, paths, baseline_paths, extra, scores))
    unused_files = {
        "--texts": splits,
        "--suites": named,
        "--references": more,
        "--baseline": theirs,
        "--external": external,
    }
    for option, unused in unused_files.items():
        for name in unused:
            raise UserError(f"{option}: {name}: --outputs has no output on this test ({', '.join(FORMS.values())})")
    if not tests:
        raise UserError("--outputs: no files: pass at least one output")
    return tests


def _by_name(option: str, named: Iterable[tuple[str, Path]]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for name, path in named:
        if name in files:
            raise UserError(f"{option}: {path}: {files[name]} has the same name: pass one of them")
        files[name] = path
    return files
