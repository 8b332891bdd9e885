"""First configuration for user-supplied files, which are checked."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import yaml
from tabulate import tabulate

from docmt.config.loading import load_config, parse_yaml
from docmt.corpora.combining import LEAK_PERCENT, Overlap
from docmt.corpora.documents import Document
from docmt.corpora.guessing import FoundSplit, find_split, suffix_of
from docmt.corpora.inspection import SplitInspection
from docmt.corpora.readers.registry import FORMATS, Format, read
from docmt.corpora.readers.tabular import TsvLines
from docmt.errors import UserError
from docmt.evaluation.metrics import EvaluationSettings, check_target_language
from docmt.text.tokenizer import LANGUAGES

SIZES = (
    (200_000, {"size": "tiny", "merges": 4000, "rate": "2.0e-3", "warmup": 200, "steps": 900, "more": 150}),
    (2_000_000, {"size": "small", "merges": 16000, "rate": "1.0e-3", "warmup": 2000, "steps": 20000, "more": 4000}),
    (10**12, {"size": "base", "merges": 32000, "rate": "7.0e-4", "warmup": 4000, "steps": 100000, "more": 20000}),
)
"""Model and training settings by maximum number of sentence pairs."""
LONG_DOCUMENTS = 1000
"""Mean number of sentences per document above which boundaries are probably missing."""
STUDY = Template("""\
# Made by `docmt init`. All keys: docs/configuration.md, or docmt config manual.
corpora:
  custom:
    mine:
      languages: $languages
      format: $format
      splits:                          # paths are relative to this folder
$splits
text: $text
instances:                             # texts that a model reads at once
  sentences: {max_sentences: 1}
  documents: {max_tokens: 512}         # whole sentences of one document, up to 512 subwords
training:
  scratch:
    {learning_rate: $rate, warmup_steps: $warmup, word_dropout: 0.0, max_steps: $steps, validate_every_steps: $every}
  finetune:                            # after `scratch`: new attention starts without effect, and learns faster
    {learning_rate: 5.0e-4, pretrained_learning_rate: 2.0e-4, warmup_steps: 50, init_new_parameters: zero,
     max_steps: $more, validate_every_steps: $half}
datasets:
  mine:
    src_lang: $src
    tgt_lang: $tgt
    train: [mine/train]
    dev: [mine/dev]                    # chooses the best model
    test: {test: [mine/test]}          # is scored
systems:
  sentence: {instances: sentences, architecture: sentence_transformer, size: $size, recipe: scratch}
  # The control: as many updates as the next system, and no context.
  longer: {instances: sentences, architecture: sentence_transformer, size: $size, recipe: finetune, init: sentence}
  g_transformer:
    {instances: documents, architecture: g_transformer, size: $size, model: {positions: sentence}, recipe: finetune,
     init: sentence}
${evaluation}report: {title: My first study, baseline: longer}
seeds: [1]                             # [1, 2, 3] for means and deviations
""")


class NewStudy:
    """A study on user-supplied files that were read and checked.

    Attributes:
        yaml: configuration.
        summary: guessed settings and counts, for the terminal.
        warnings: possible problems in the files.
    """

    def __init__(
        self, paths: Mapping[str, Sequence[Path]], folder: Path, *, form: str | None, languages: Sequence[str] | None
    ) -> None:
        """Read the files by split, for a study in `folder`."""
        form_settings = _format_settings(form)
        splits: dict[str, FoundSplit] = {}
        pair = [code.lower() for code in languages or []]
        for name, files in paths.items():
            first = splits.get("train")
            is_like_train = first and [*map(suffix_of, files)] == [*map(suffix_of, first.files.values())]
            settings = form_settings
            if first and is_like_train and isinstance(first.form, TsvLines) and first.form.id_column:
                settings = first.form.model_dump()  # a small split is not enough to guess the id column
            splits[name] = find_split(files, form=settings, languages=pair, where=f"--{name}")
            pair = pair or list(splits[name].languages)
        self.warnings: list[str] = []
        rows = self._read(splits)
        train = splits["train"]
        forms: dict[str, list[str]] = {}
        for name, split in splits.items():
            settings = _settings_of(split.form)
            form_text = split.form.reader
            if len(settings) != 1:
                form_text = _flow(settings)
            forms.setdefault(form_text, []).append(name)
        languages_origin = "" if languages else " (guessed; --languages overrides)"
        format_origin = "" if form else " (guessed; --format overrides)"
        summary = [f"languages: {' → '.join(pair)}{languages_origin}"]
        for form_text, names in forms.items():
            description = (splits[names[0]].form.__doc__ or "").split("\n")[0]
            summary.append(f"format of {', '.join(names)}: {form_text}{format_origin}. {description}")
        self.summary = "\n".join([*summary, tabulate(rows, headers="keys", intfmt=",")])
        sizes = next(sizes for most, sizes in SIZES if rows[0]["sentences"] <= most)
        lines = []
        for name, split in splits.items():
            files = {role: _path_in(path, folder) for role, path in split.files.items()}
            row: dict[str, Any] = {"files": files}
            if split.form != train.form:
                row["format"] = _settings_of(split.form)
            lines.append(f"        {name}: {_flow(row)}")
        text: dict[str, Any] = {"bpe_merges": sizes["merges"]}
        if not LANGUAGES.issuperset(pair):
            text = {"tokenization": "sentencepiece", "truecase": False, "sentencepiece_size": sizes["merges"]}
        evaluation = ""
        try:
            check_target_language(EvaluationSettings(), pair[1])
        except UserError as problem:
            evaluation = f"evaluation: {_flow({'bleu_tokenizer': 'char'})}\n"
            self.warnings.append(f"BLEU counts characters: {problem}")
        self.yaml = STUDY.substitute(
            sizes,
            languages=_flow(pair),
            format=_flow(_settings_of(train.form)),
            splits="\n".join(lines),
            text=_flow(text),
            evaluation=evaluation,
            every=sizes["steps"] // 3,
            half=sizes["more"] // 2,
            src=_flow(pair[0]),
            tgt=_flow(pair[1]),
        )
        load_config(yaml.safe_load(self.yaml))

    def _read(self, splits: Mapping[str, FoundSplit]) -> list[dict[str, Any]]:
        """Return counts by split, and add warnings. Only the training split is not kept in memory."""
        rows: list[dict[str, Any]] = []
        held: dict[str, list[Document]] = {}
        overlap = Overlap.of_tests([])
        # The last split is searched for sentences from the other splits.
        for name in sorted(splits, key="train".__eq__):
            split = splits[name]
            inspection = SplitInspection(split.languages)
            try:
                documents, counts = read(split.files, form=split.form, languages=split.languages)
                if name == "train":
                    overlap = Overlap.of_tests(list(held.values()))
                    overlap.add(inspection.watch(documents))
                else:
                    held[name] = list(inspection.watch(documents))
            except UserError as error:
                raise UserError(f"--{name}, read as {split.form.reader} (--format overrides): {error}") from None
            row = {
                "split": name,
                "documents": counts.documents,
                "sentences": counts.sentences,
                "empty": counts.empty_source + counts.empty_target + counts.empty_both,
                "left out": counts.dropped.total(),
            }
            rows.append(row)
            self.warnings += inspection.warnings(name)
            if counts.empty_documents:
                self.warnings.append(f"{name}: empty documents, which are left out: {counts.empty_documents:,}")
            if counts.documents == counts.sentences:
                self.warnings.append(f"{name}: no document has a second sentence, so there is no context to learn from")
            elif counts.documents == 1 or counts.sentences > LONG_DOCUMENTS * counts.documents:
                self.warnings.append(
                    f"{name}: are boundaries between documents missing? Documents: {counts.documents:,}, sentences: "
                    f"{counts.sentences:,}"
                )
        shared = Overlap.of_tests([held["test"]])
        shared.add(held["dev"])
        overlaps = [(name, "training", overlap.count(documents)) for name, documents in held.items()]
        overlaps.append(("test", "dev", shared.count(held["test"])))
        for name, where, seen in overlaps:
            if seen["seen_documents"] or seen["seen_sources_percent"] >= LEAK_PERCENT:
                self.warnings.append(
                    f"{name}: {seen['seen_sources_percent']:.0f} % of the source sentences are in the {where} text, "
                    f"too (documents with more than half: {seen['seen_documents']:,})"
                )
        return sorted(rows, key=lambda row: list(splits).index(row["split"]))


def _format_settings(form: str | None) -> dict[str, Any]:
    """Return the `--format` settings: a reader name, or a mapping in YAML."""
    try:
        values = parse_yaml(form or "{}", where="--format")
    except UserError:
        values = None
    if isinstance(values, str):
        values = {"reader": values}
    if not isinstance(values, dict) or (form and values.get("reader") not in FORMATS):
        raise UserError(
            f"--format {form}: expected a reader, or a reader with its settings, such as "
            f"'{{reader: tsv, columns: [2, 3]}}'; readers: {', '.join(FORMATS)}"
        )
    return values


def _settings_of(form: Format) -> dict[str, Any]:
    return form.model_dump(exclude_defaults=True)


def _path_in(path: Path, folder: Path) -> str:
    """Return a path relative to the study folder, or an absolute path unchanged."""
    if path.is_absolute():
        return path.as_posix()
    # `..` after a symbolic link is the target's parent. Other links stay in the path.
    if ".." in path.parts:
        path = path.parent.resolve() / path.name
    return Path(os.path.relpath(path, folder.resolve())).as_posix()


def _flow(value: Any) -> str:
    """Return a value as one line of YAML."""
    return (
        yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6)
        .removesuffix("...\n")
        .strip()
    )
