"""References `corpus/split` and `corpus/suite` to catalog, generated or user-supplied corpora."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal

from docmt.config.schema import Config
from docmt.controlled.suites import CHOICES
from docmt.corpora.catalog import ReadableCorpus, load_catalog
from docmt.corpora.readers.reader import CorpusFormat, SuiteFormat
from docmt.corpora.readers.registry import can_read
from docmt.errors import UserError
from docmt.settings import nearest

CONTROLLED_LANGUAGES = ("en", "de")
CONTROLLED_SPLITS: tuple[str, ...] = ("train", "dev", "test")
CONTROLLED_SUITES: tuple[str, ...] = ("pronoun", "deixis", "cohesion", "ellipsis")
NESTED_SUITES: tuple[str, ...] = ("structure", "deixis", "cohesion", "ellipsis")
"""Splits and suites from `docmt controlled generate`. The suites depend on the generator."""

Kind = Literal["controlled", "custom", "mtdata", "catalog"]


def corpus_kind(config: Config, corpus: str, *, where: str) -> Kind:
    """Return a corpus's origin."""
    if corpus in config.corpora.controlled:
        return "controlled"
    if corpus in config.corpora.custom:
        return "custom"
    if corpus in config.corpora.mtdata:
        return "mtdata"
    if corpus in load_catalog():
        return "catalog"
    names = [*config.corpora.controlled, *config.corpora.custom, *config.corpora.mtdata, *load_catalog()]
    raise UserError(f"{where}: no corpus {corpus!r}; {nearest(corpus, names)}")


def readable_corpus(config: Config, corpus: str) -> ReadableCorpus:
    """Return the description for a corpus that is read from files (user-supplied, mtdata or catalog)."""
    if corpus in config.corpora.mtdata:
        return config.corpora.mtdata[corpus].as_corpus()
    if corpus in config.corpora.custom:
        return config.corpora.custom[corpus]
    return load_catalog()[corpus].corpus


def corpus_languages(config: Config, corpus: str) -> tuple[str, ...]:
    """Return the corpus languages. Datasets can use either direction."""
    if corpus in config.corpora.controlled:
        return CONTROLLED_LANGUAGES
    return tuple(readable_corpus(config, corpus).languages)


def check_reference(config: Config, reference: str, *, languages: tuple[str, ...], where: str) -> None:
    """Raise UserError unless `reference` names text in these languages.

    Two languages require parallel text in either direction. A single language requires monolingual documents, or
    parallel text with this language on one side.
    """
    corpus = reference.split("/")[0]
    corpus_kind(config, corpus, where=where)
    pair = corpus_languages(config, corpus)
    fits = partial(can_read, n_languages=len(pair))
    _check_name(config, reference, generated=CONTROLLED_SPLITS, fits=fits, where=where)
    if len(languages) == 2 and sorted(pair) != sorted(languages):
        raise UserError(
            f"{where}: corpus {corpus!r} is in {' and '.join(pair)}, but src_lang and tgt_lang are "
            f"{' and '.join(languages)}"
        )
    if not set(languages) <= set(pair):
        raise UserError(
            f"{where}: corpus {corpus!r} is in {' and '.join(pair)}, but the monolingual documents must be in "
            f"{languages[0]} (monolingual_lang, or else src_lang)"
        )


def check_suite(config: Config, reference: str, *, languages: tuple[str, str], where: str) -> None:
    """Raise UserError unless `reference` names a contrastive or generative test set for this direction."""
    corpus = reference.split("/")[0]
    row = config.corpora.controlled.get(corpus)
    generated = CONTROLLED_SUITES
    if row is not None and row.generator == "nested":
        generated = NESTED_SUITES
    what = "contrastive test set"
    _check_name(
        config, reference, generated=generated, fits=lambda form: isinstance(form, SuiteFormat), where=where, what=what
    )
    pair = corpus_languages(config, corpus)
    if pair != languages:
        raise UserError(f"{where}: {reference!r} tests {'-'.join(pair)}, not {'-'.join(languages)}")


def is_generative(config: Config, reference: str) -> bool:
    """True if a suite is generative (scored by translations, not by preferences among candidates)."""
    corpus, suite = reference.split("/")
    if corpus in config.corpora.controlled:
        return False
    return readable_corpus(config, corpus).holds(suite) == "generative"


def suite_choices(config: Config, reference: str) -> dict[str, str]:
    """Return the choices that depend on context in a suite, by phenomenon. Empty for user-supplied suites."""
    corpus = reference.split("/")[0]
    if corpus in config.corpora.controlled:
        return CHOICES
    if corpus in config.corpora.custom:
        return {}
    return load_catalog()[corpus].corpus.choices


def _check_name(
    config: Config,
    reference: str,
    *,
    generated: Iterable[str],
    fits: Callable[[CorpusFormat], bool],
    where: str,
    what: str = "split",
) -> None:
    """Raise UserError unless docmt generates the split, or reads it in a suitable format."""
    corpus, split = reference.split("/")
    names = list(generated)
    if corpus_kind(config, corpus, where=where) != "controlled":
        row = readable_corpus(config, corpus)
        names = [name for name in row.splits if fits(row.format_of(name))]
    if split not in names:
        hint = "it has none"
        if names:
            hint = nearest(split, names)
        raise UserError(f"{where}: corpus {corpus!r} has no {what} {split!r}; {hint}")
