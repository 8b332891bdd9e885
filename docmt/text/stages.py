"""The text stages on files: each input line gives one output line."""

import functools
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from docmt.errors import UserError
from docmt.files import count_lines, iterate_lines, write_lines
from docmt.logs import progress
from docmt.processes import map_chunks
from docmt.text.pieces import EVERY, Pieces, learn_pieces
from docmt.text.pipeline import TextPipeline
from docmt.text.published import PublishedText
from docmt.text.settings import TextSettings
from docmt.text.subwords import Subwords, learn_codes, read_codes, subwords_of, write_codes
from docmt.text.tokenizer import check_language, get_tokenizer
from docmt.text.truecaser import Truecaser, count_forms
from docmt.text.vocabulary import Vocabulary, extra_specials

log = logging.getLogger(__name__)

CHUNK_LINES = 1000


def map_lines(
    function: Callable[[str], str], lines: Iterable[str], *, jobs: int, label: str, total: int | None = None
) -> Iterator[str]:
    """Apply a function to each line, in order; lines are read as they are needed.

    With one job, no process is started; with more, the function must be picklable. The result does not depend on their
    number. `total` is the number of lines, where it is known. Raises UserError when `jobs` is below 1.
    """
    chunks = map_chunks(functools.partial(_map, function), lines, size=CHUNK_LINES, jobs=jobs)
    return progress(itertools.chain.from_iterable(chunks), label=label, unit="lines", total=total)


def _map(function: Callable[[str], str], lines: list[str]) -> list[str]:
    return list(map(function, lines))


def _map_file(function: Callable[[str], str], source: Path, target: Path, *, jobs: int, label: str) -> None:
    """Write what a function makes of each line of a file."""
    lines = map_lines(function, iterate_lines(source), jobs=jobs, label=label, total=count_lines(source))
    write_lines(target, lines)


def _read(sources: Sequence[Path], *, label: str) -> Iterator[str]:
    """The lines of several files, one at a time, with a progress bar."""
    counts = [count for source in sources if (count := count_lines(source)) is not None]
    total = sum(counts) if len(counts) == len(sources) else None
    return progress(itertools.chain.from_iterable(map(iterate_lines, sources)), label=label, unit="lines", total=total)


def tokenize_file(source: Path, target: Path, *, lang: str, settings: TextSettings, jobs: int = 1) -> None:
    """Normalize and tokenize a file. Raises UserError when the language is unknown or the file is bad."""
    check_language(lang, settings.tokenization)
    function = functools.partial(
        tokenize_line,
        lang=lang,
        normalize=settings.normalise,
        lowercase=settings.lowercase,
        tokenization=settings.tokenization,
    )
    _map_file(function, source, target, jobs=jobs, label=f"tokenize {lang}")


def tokenize_line(line: str, *, lang: str, **options: Any) -> str:
    """The tokens of a line, separated by spaces; for the options see `get_tokenizer`."""
    return " ".join(get_tokenizer(lang, **options).tokenize(line))


def learn_truecaser_file(sources: Sequence[Path], target: Path, *, settings: TextSettings, jobs: int = 1) -> None:
    """Learn a truecaser on all tokenized files together; if `truecase` is false, one that changes nothing."""
    if not settings.truecase:
        log.info("truecase is false: the truecaser changes nothing")
        Truecaser(None).save(target)
        return
    forms: Counter[str] = Counter()
    for counted in map_chunks(_count_forms, _read(sources, label="learn truecaser"), size=CHUNK_LINES, jobs=jobs):
        forms.update(counted)
    truecaser = Truecaser.of_forms(forms)
    log.info("%d words are written in lower case inside sentences", len(truecaser.words or ()))
    truecaser.save(target)


def _count_forms(lines: list[str]) -> Counter[str]:
    return count_forms(line.split(" ") for line in lines)


def truecase_file(source: Path, target: Path, *, model: Path, jobs: int = 1) -> None:
    """Truecase a tokenized file."""
    function = functools.partial(_truecase_line, truecaser=Truecaser.load(model))
    _map_file(function, source, target, jobs=jobs, label="truecase")


def _truecase_line(line: str, *, truecaser: Truecaser) -> str:
    return " ".join(truecaser.truecase(line.split(" ")))


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
        write_codes(target, PublishedText.read(Path(settings.pretrained)).models((src, tgt)))
        return
    lines = _read(sources, label="count words")
    if settings.tokenization == "sentencepiece":
        write_codes(target, learn_pieces(lines, size=settings.sentencepiece_size))
        return
    codes = learn_codes(lines, merges=settings.bpe_merges, min_frequency=settings.bpe_min_frequency)
    n_merges = codes.count("\n") - 1
    if n_merges < settings.bpe_merges:
        log.warning("the text yields only %d of %d BPE merges (bpe_merges)", n_merges, settings.bpe_merges)
    write_codes(target, codes)


def apply_bpe_file(source: Path, target: Path, *, codes: Path, lang: str = EVERY, jobs: int = 1) -> None:
    """Split a tokenized file into subwords; the language matters where each has its SentencePiece model."""
    function = functools.partial(_split_line, subwords=subwords_of(read_codes(codes), lang))
    _map_file(function, source, target, jobs=jobs, label="apply BPE")


def _split_line(line: str, *, subwords: Subwords | Pieces) -> str:
    return " ".join(subwords.split(line.split(" ")))


def learn_vocabulary_file(sources: Sequence[Path], target: Path, *, tags: Sequence[str] = ()) -> None:
    """Learn a vocabulary on all files of subwords together.

    The tags of the languages `tags` become special symbols, together with the masks of document restoration. Raises
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
    """Write the vocabulary of a published model: all of it, or with `keep` `seen` what the files of subwords have."""
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
    pairs = zip(languages, truecasers, strict=True)
    pipeline = TextPipeline(
        settings,
        languages=languages,
        truecasers={lang: Truecaser.load(path) for lang, path in pairs},
        codes=read_codes(codes),
    )
    pipeline.save(target)


def restore_file(source: Path, target: Path, *, pipeline: TextPipeline, lang: str) -> None:
    """Restore sentences from a file of subwords."""
    lines = _read([source], label=f"restore {lang}")
    write_lines(target, (pipeline.restore(line.split(), lang=lang) for line in lines))
