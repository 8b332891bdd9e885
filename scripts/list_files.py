"""List the files of a study by stage, as declared in docmt/config/artifacts, inside docs/files.md.

Prints the list; with `--write`, replaces it in docs/files.md (`make docs` does that).
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from marked_page import print_or_write, replace_between_marks

from docmt.config.artifacts.base import STAGE_VERSIONS
from docmt.config.artifacts.report import StudyArtifacts
from docmt.config.loading import load_config, merge, read_config_file

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/files.md"
NAME = "scripts/list_files.py"
EVERYTHING = """
discourse:
  segmenters: {gum: {treebank: gum}}
  trees: {gum: {segmenter: gum, parser: chain}}
instances:
  documents_with_gum: {trees: gum}
systems:
  rst_gum: {cutting: documents_with_gum, architecture: rst_mix, size: tiny, recipe: scratch}
  service: {hypotheses: {talks/ted: service.de}}
evaluation: {metrics: [s-BLEU, "d-BLEU (instances)", CXMI], comet: {checkpoint: comet.ckpt}}
report:
  baseline: sentence_transformer
  claims:
    better:
      {statement: It is better, metric: s-BLEU, dataset: talks, test: ted, relations: [rst_mix > document_transformer]}
corpora: {mtdata: {europarl: {id: Statmt-europarl-10-deu-eng, documents: doc_id}}, filters: {web: {}}}
datasets:
  talks:
    src_lang: en
    tgt_lang: de
    train: [maruf2019-ted/train, europarl/all]
    filters: {train: web}
    dev: [maruf2019-ted/dev]
    test: {ted: [maruf2019-ted/test]}
    suites: [contrapro-ende/test, ctxpro-ende/formality_dev]
    text: {tokenization: sentencepiece, truecase: false, pretrained: opus-mt-en-de}
"""
"""What the smoke study lacks: together they make every kind of file."""


def declared() -> Iterator[tuple[str, str, list[str]]]:
    """Stage, description and files of each declaration, with the names of its arguments in the paths.

    Raises ValueError for a declaration that the study above does not make.
    """
    smoke = read_config_file(ROOT / "config/examples/smoke.yaml")
    artifacts = StudyArtifacts(load_config(merge(smoke, yaml.safe_load(EVERYTHING))))
    list(artifacts.all_made)
    for cls in reversed(StudyArtifacts.__mro__):
        for name, method in vars(cls).items():
            stage, rules = getattr(method, "made_by", ("", ()))
            if not rules:  # another name for what a declaration of the same stage makes
                continue
            parameters = list(inspect.signature(method).parameters)[1:]
            made = [
                [with_names(file, dict(zip(key[1], parameters, strict=True))) for file in artifact.files]
                for key, artifact in artifacts.known.items()
                if key[0] == name
            ]
            if not made:
                raise ValueError(f"{NAME}: its study makes nothing that {cls.__name__}.{name} declares")
            # Some calls lead to files of another run, or to a file of the user's: their paths lack names.
            files = max(made, key=lambda paths: paths[0].replace("{src}-{tgt}", "").count("{"))
            about = (inspect.getdoc(method) or "").partition("\n\n")[0].replace("\n", " ")
            yield stage, about, list(dict.fromkeys(files))


def with_names(file: str, values: dict[str, str]) -> str:
    """A path with the names of parameters in place of their values, and with `{src}`, `{tgt}` and `{lang}`."""
    for value in sorted(values, key=len, reverse=True):
        before = "seed" if values[value] == "seed" else "(?<![{A-Za-z0-9])"
        file = re.sub(rf"({before}){re.escape(value)}(?![A-Za-z0-9_-])", rf"\1{{{values[value]}}}", file)
    file = re.sub(r"^(resources/\w+/\{\w+\}/)[^/]+", r"\1{version}", file)
    file = re.sub(r"\ben-de\b", "{src}-{tgt}", file).replace("1-of-1", "{shard}-of-{n}")
    return re.sub(r"\.(en|de)(?=$|\.)", ".{lang}", file)


def listing() -> str:
    """The files of each stage, with what they are."""
    lines: dict[str, list[str]] = {stage: [] for stage in STAGE_VERSIONS}
    for stage, about, files in declared():
        folder = files[0].rpartition("/")[0]
        names = [f"`{files[0]}`", *(f"`{file.removeprefix(f'{folder}/')}`" for file in files[1:])]
        lines[stage].append(f"- {', '.join(names)}: {about}")
    blocks = ["\n".join([f"**{stage.capitalize()}**", "", *lines[stage]]) for stage in lines]
    return "\n\n".join(blocks) + "\n"


def updated_page(page: str) -> str:
    """The page with today's files."""
    return replace_between_marks(page, NAME, listing())


if __name__ == "__main__":
    print_or_write(PAGE, NAME, listing, purpose="List the files of a study.")
