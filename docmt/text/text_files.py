"""The steps of the text pipeline on files: each input line gives one output line."""

import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from docmt.errors import UserError
from docmt.files import count_lines, iterate_lines, write_lines
from docmt.logs import progress
from docmt.processes import map_chunks
from docmt.text.pipeline import TextPipeline
from docmt.text.published_text import PublishedText
from docmt.text.settings import TextSettings
from docmt.text.subwords import EVERY, learn_merges, learn_sentencepiece, read_codes, subword_model, write_codes
from docmt.text.tokenizer import check_language, get_tokenizer
from docmt.text.truecaser import Truecaser, count_forms
from docmt.text.vocabulary import Vocabulary, extra_specials

log = logging.getLogger(__name__)

CHUNK_LINES = 1000


def _read(sources: Sequence[Path], *, label: str) -> Iterator[str]:
    """The lines of several files, one at a time, with a progress bar."""
    # The bar has a total only if all files can be counted; a compressed file cannot without reading it.
    counts = [count for source in sources if (count := count_lines(source)) is not None]
    total = sum(counts) if len(counts) == len(sources) else None
    return progress(itertools.chain.from_iterable(map(iterate_lines, sources)), label=label, unit="lines", total=total)


def _map_file(function: Callable[[list[str]], list[str]], source: Path, target: Path, *, jobs: int, label: str) -> None:
    """Apply a picklable function to chunks of the lines of a file, in `jobs` processes."""
    chunks = map_chunks(function, iterate_lines(source), size=CHUNK_LINES, jobs=jobs)
    lines = itertools.chain.from_iterable(chunks)
    write_lines(target, progress(lines, label=label, unit="lines", total=count_lines(source)))


def _map_tokens(function: Callable[[list[str]], list[str]], lines: list[str]) -> list[str]:
    return [" ".join(function(line.split(" "))) for line in lines]


def tokenize_file(source: Path, target: Path, *, lang: str, settings: TextSettings, jobs: int = 1) -> None:
    """Normalize and tokenize a file. Raises UserError when the language is unknown or the file is bad."""
    check_language(lang, settings.tokenization)
    options = {"normalize": settings.normalise, "lowercase": settings.lowercase, "tokenization": settings.tokenization}
    _map_file(partial(_tokenize, lang=lang, **options), source, target, jobs=jobs, label=f"tokenize {lang}")


def _tokenize(lines: list[str], *, lang: str, **options: Any) -> list[str]:
    # A function of the module and not the method of a tokenizer: the library's objects cannot be pickled, so each
    # process makes its own tokenizer.
    tokenizer = get_tokenizer(lang, **options)
    return [" ".join(tokenizer.tokenize(line)) for line in lines]


def learn_truecaser_file(sources: Sequence[Path], target: Path, *, settings: TextSettings, jobs: int = 1) -> None:
    """Learn a truecaser on all tokenized files together; if `truecase` is false, one that changes nothing."""
    if not settings.truecase:
        log.info("truecase is false: the truecaser changes nothing")
        Truecaser(None).save(target)
        return
    forms: Counter[str] = Counter()
    for counted in map_chunks(count_forms, _read(sources, label="learn truecaser"), size=CHUNK_LINES, jobs=jobs):
        forms.update(counted)
    truecaser = Truecaser.learn(forms)
    log.info("%d words are written in lower case inside sentences", len(truecaser.words or ()))
    truecaser.save(target)


def truecase_file(source: Path, target: Path, *, model: Path, jobs: int = 1) -> None:
    """Truecase a tokenized file."""
    _map_file(partial(_map_tokens, Truecaser.load(model).truecase), source, target, jobs=jobs, label="truecase")


def learn_bpe_file(
    sources: Sequence[Path],
    target: Path,
    *,
    settings: TextSettings,
    languages: tuple[str | None, str | None] = (None, None),
) -> None:
    """Learn BPE merges, or SentencePiece, on all files together; or take the pieces of a published model.

    Raises UserError when there is no text, or no languages for a published model.
    """
    if settings.pretrained is not None:
        src, tgt = languages
        if src is None or tgt is None:
            raise UserError("--src-lang and --tgt-lang: a published model needs the languages")
        write_codes(target, PublishedText.read(Path(settings.pretrained)).subword_codes((src, tgt)))
        return
    # Both sides together: joint subwords, so that names are split alike in both languages.
    lines = _read(sources, label="count words")
    if settings.tokenization == "sentencepiece":
        write_codes(target, learn_sentencepiece(lines, size=settings.sentencepiece_size))
        return
    codes = learn_merges(lines, merges=settings.bpe_merges, min_frequency=settings.bpe_min_frequency)
    # The first line is a header.
    n_merges = codes.count("\n") - 1
    if n_merges < settings.bpe_merges:
        log.warning("the text yields only %d of %d BPE merges (bpe_merges)", n_merges, settings.bpe_merges)
    write_codes(target, codes)


def apply_bpe_file(source: Path, target: Path, *, codes: Path, lang: str = EVERY, jobs: int = 1) -> None:
    """Split a tokenized file into subwords; the language matters where each has its SentencePiece model."""
    model = subword_model(read_codes(codes), lang)
    _map_file(partial(_map_tokens, model.split), source, target, jobs=jobs, label="apply BPE")


def learn_vocabulary_file(sources: Sequence[Path], target: Path, *, tags: Sequence[str] = ()) -> None:
    """Learn a vocabulary on all files of subwords together.

    With languages in `tags`, their tags and the masks of document restoration become special symbols. Raises
    UserError when the files have no text, or a language code is malformed.
    """
    extras = extra_specials(tags) if tags else ()
    sentences = map(str.split, _read(sources, label="vocabulary"))
    vocabulary = Vocabulary.from_sentences(sentences, extras=extras)
    if not any(vocabulary.counts):
        raise UserError(f"no text to learn a vocabulary from: {', '.join(map(str, sources))}")
    log.info("%d symbols, %d of them special", len(vocabulary), len(vocabulary) - sum(map(bool, vocabulary.counts)))
    vocabulary.save(target)


def published_vocabulary_file(
    sources: Sequence[Path], target: Path, *, folder: Path, languages: tuple[str, str], keep: str
) -> None:
    """Write the vocabulary of a published model: all of it, or with `keep` `seen` the subwords in the files."""
    kept = None
    if keep == "seen":
        kept = {subword for line in _read(sources, label="vocabulary") for subword in line.split()}
    vocabulary = PublishedText.read(folder).vocabulary(languages, kept=kept)
    log.info("%d symbols of %s", len(vocabulary), folder)
    vocabulary.save(target)


def pack_pipeline(
    target: Path, *, settings: TextSettings, languages: tuple[str, str], truecasers: Sequence[Path], codes: Path
) -> None:
    """Write settings, truecasers (source first) and BPE codes to one file."""
    loaded = dict(zip(languages, map(Truecaser.load, truecasers), strict=True))
    TextPipeline(settings, languages=languages, truecasers=loaded, codes=read_codes(codes)).save(target)


def restore_file(source: Path, target: Path, *, pipeline: TextPipeline, lang: str) -> None:
    """Restore sentences from a file of subwords."""
    lines = _read([source], label=f"restore {lang}")
    write_lines(target, (pipeline.restore(line.split(), lang=lang) for line in lines))
