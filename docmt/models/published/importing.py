"""Import of published model folders."""

import itertools
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from torch import Tensor

from docmt.errors import UserError
from docmt.instances.settings import InstancesSettings
from docmt.models.model_file import TrainedModel, build_model
from docmt.models.published.families import SAME, convert_weights, find_family, read_settings, read_weights
from docmt.models.settings import ModelSettings
from docmt.provenance import describe
from docmt.text.pipeline import TextPipeline
from docmt.text.published_text import PublishedText
from docmt.text.settings import TextSettings
from docmt.text.truecaser import Truecaser
from docmt.text.vocabulary import SPECIALS, Vocabulary, language_tag

log = logging.getLogger(__name__)

TARGET_SYMBOL = re.compile(r">>[\w-]+<<")
"""Pattern for the symbol of a target language in a Marian model."""
MAX_TOKENS = 512
"""Maximum tokens per instance for an imported model, as in the papers."""


def import_model(
    folder: Path, *, languages: tuple[str, str], codes: Sequence[str] | None = None, text: Iterable[str] | None = None
) -> TrainedModel:
    """Read a published sentence model.

    Args:
        folder: with config.json, weights, SentencePiece models and, for some families, vocab.json.
        languages: source and target, as docmt names them.
        codes: their symbols in a multilingual model if docmt's names do not match, for example `eng_Latn`. In a Marian
            model with several target languages, the second is the first source symbol, for example `>>deu<<`.
        text: sentences in both languages. Only pieces that occur in them are kept. None keeps all.
    """
    settings, published, family = read_settings(folder), PublishedText.read(folder), find_family(folder)
    pipeline = TextPipeline(
        TextSettings(tokenization="sentencepiece", truecase=False, **family.text),
        languages=languages,
        truecasers=dict.fromkeys(languages, Truecaser(None)),
        codes=published.subword_codes(languages),
    )
    if not codes:
        _warn_of_target_languages(published)
    if codes and not published.language_symbols:
        marks = None
        if settings.marks:
            marks = settings.marks.model_copy(update={"src_before": [codes[1]]})
        settings = settings.model_copy(update={"marks": marks})
    subwords = None
    if text is not None:  # whichever language a sentence is in
        pieces = (pipeline.prepare(sentence, lang=lang) for sentence in text for lang in languages)
        subwords = {*itertools.chain.from_iterable(pieces), *(codes or ())}
    tags = language_symbols(published, languages, codes)
    others = {lang: code for lang, code in published.symbols_by_language().items() if code not in tags.values()}
    tags |= {lang: code for lang, code in others.items() if lang not in tags}
    vocabulary = published.vocabulary(tags, selection=subwords)
    rows = published_rows(published, vocabulary, tags)
    weights = convert_weights(read_weights(folder), settings, rows)
    model = build_model(settings, len(vocabulary), weights, where=str(folder), mend="get its files again")
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    log.info("%d symbols (%d in %s), %d parameters", len(vocabulary), len(published.ids), folder, n_parameters)
    origin = describe(imported="/".join(folder.parts[-2:]))  # a model of the catalog: name and version
    trained = TrainedModel(model, vocabulary, pipeline, {"max_tokens": MAX_TOKENS}, origin)
    try:
        trained.marks  # noqa: B018 - checks them
    except UserError as error:
        raise UserError(f"{folder}: {error}") from None
    return trained


def import_for_study(
    folder: Path, vocabulary: Vocabulary, pipeline: TextPipeline, limits: InstancesSettings
) -> TrainedModel:
    """Read a published sentence model for the text of a study, whose vocabulary has been built from this model.

    `limits` of the study's instances also apply to documents in suites.
    """
    settings = read_settings(folder)
    weights = published_weights(folder, settings, vocabulary, (pipeline.src_lang, pipeline.tgt_lang))
    model = build_model(settings, len(vocabulary), weights, where=str(folder), mend="get its files again")
    return TrainedModel(model, vocabulary, pipeline, limits.model_dump(), describe(imported=folder.name))


def _warn_of_target_languages(published: PublishedText) -> None:
    """Warn if a Marian model has symbols for several target languages, of which none has been chosen."""
    symbols = sorted(filter(TARGET_SYMBOL.fullmatch, published.ids))
    if len(symbols) > 1:
        log.warning(
            "%s: has symbols for several target languages (%s, …): without one, it can translate into any of them. "
            "`docmt models import --codes SOURCE '%s'` chooses one",
            published.folder,
            ", ".join(symbols[:3]),
            symbols[0],
        )


def language_symbols(
    published: PublishedText, languages: tuple[str, str], codes: Sequence[str] | None = None
) -> dict[str, str]:
    """Return the published symbols for source and target language, by language. Empty for one language pair."""
    if not published.language_symbols:
        return {}
    return {lang: published.language_symbol(code) for lang, code in zip(languages, codes or languages, strict=True)}


def published_rows(published: PublishedText, vocabulary: Vocabulary, tags: Mapping[str, str]) -> list[int]:
    """Return the published row for every symbol, −1 if the model lacks it. `tags` are the language symbols."""
    ids = {symbol: published.ids.get(symbol, -1) for symbol in (*SPECIALS, *vocabulary.extras)}
    ids |= {language_tag(lang): published.ids[symbol] for lang, symbol in tags.items()}
    if not published.language_symbols and "<s>" not in published.ids:
        # Marian: no symbol begins a sentence, and the row of the mask is not learned.
        ids |= {"<s>": -1, "<pad>": -1}
    rows = []
    for symbol in vocabulary.symbols:
        row = ids.get(symbol, published.ids.get(symbol))
        if row is None:
            raise UserError(f"{published.folder}: has no symbol {symbol!r}: build the text with `pretrained` set to it")
        rows.append(row)
    return rows


def published_weights(
    folder: Path, settings: ModelSettings, vocabulary: Vocabulary, languages: tuple[str, str]
) -> dict[str, Tensor]:
    """Return a published model's weights for a model with these settings and symbols, in a training."""
    original = read_settings(folder)
    for key in SAME:
        value, expected = getattr(settings, key), getattr(original, key)
        if value != expected:
            raise UserError(f"{folder}: model.{key} of the published model is {expected!s}, not {value!s}")
    published = PublishedText.read(folder)
    _warn_of_target_languages(published)
    rows = published_rows(published, vocabulary, language_symbols(published, languages))
    return convert_weights(read_weights(folder), original, rows)
