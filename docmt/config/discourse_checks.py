"""Checks of section `discourse`, and of the systems that read trees. Each error names its keys."""

from docmt.config.discourse import PLAIN_PARSERS, TREEBANKS, TreesRow
from docmt.config.schema import Config
from docmt.config.systems import model_settings
from docmt.errors import UserError
from docmt.settings import look_up, nearest


def check_discourse(config: Config) -> None:
    """Raises UserError when rows of `discourse` contradict each other."""
    section = config.discourse
    for name, segmenter in section.segmenters.items():
        _check_treebank(config, segmenter.treebank, where=f"config.discourse.segmenters.{name}.treebank")
    for name, parser in section.parsers.items():
        where = f"config.discourse.parsers.{name}"
        if name in PLAIN_PARSERS:
            raise UserError(f"{where}: this name is reserved for a parser that needs no training; choose another")
        _check_treebank(config, parser.treebank, where=f"{where}.treebank")
        if parser.segmenter is not None:
            look_up(section.segmenters, parser.segmenter, where=f"{where}.segmenter", what="segmenter")
    for name, trees in section.trees.items():
        where = f"config.discourse.trees.{name}"
        if trees.segmenter is not None:
            look_up(section.segmenters, trees.segmenter, where=f"{where}.segmenter", what="segmenter")
        if trees.parser is not None and trees.parser not in PLAIN_PARSERS:
            known = dict.fromkeys([*section.parsers, *PLAIN_PARSERS])
            look_up(known, trees.parser, where=f"{where}.parser", what="parser")
    for name, cutting in config.instances.items():
        if cutting.trees is not None:
            look_up(section.trees, cutting.trees, where=f"config.instances.{name}.trees", what="trees")


def check_trees(config: Config, system: str) -> None:
    """Raises UserError when a system trained to read trees has none, or when its trees have no source."""
    row = config.systems[system]
    cutting = config.instances[row.cutting]
    if cutting.trees is None:
        if row.model_of is None and model_settings(config, system).needs_trees:
            raise UserError(
                f"config.systems.{system}: architecture {row.architecture!r} reads trees, but "
                f"instances.{row.cutting} names none; give it `trees`"
            )
        return
    trees = config.discourse.trees[cutting.trees]
    where = f"config.discourse.trees.{cutting.trees}"
    for dataset in row.datasets or config.datasets:
        _check_dataset(config, dataset, trees, where=where)


def _check_dataset(config: Config, dataset: str, trees: TreesRow, *, where: str) -> None:
    row = config.datasets[dataset]
    references = [reference for part in row.parts().values() for reference in part] + row.suites
    if trees.gold:
        for reference in references:
            if reference.split("/")[0] not in config.corpora.controlled:
                raise UserError(f"{where}.gold: {reference!r} of dataset {dataset!r} is not generated: no gold trees")
        # Trees of a generated corpus belong to its English side.
        if row.src_lang != "en":
            raise UserError(
                f"{where}.gold: generated corpora have trees for English, "
                f"but {dataset!r} translates from {row.src_lang}"
            )
    # Every split and suite, also what no system reads today: a study that grows should not stop half-way.
    if trees.files:
        needed = [f"{dataset}/{name}" for name in (*row.parts(), *(f"suite_{suite}" for suite in row.suite_names()))]
        for name in needed:
            if name not in trees.files:
                raise UserError(f"{where}.files: {name!r} is missing; {nearest(name, list(trees.files))}")


def _check_treebank(config: Config, treebank: str, *, where: str) -> None:
    known = dict.fromkeys([*TREEBANKS, *config.corpora.controlled])
    look_up(known, treebank, where=where, what="treebank")
