"""The text stages on files: each input line gives one output line."""

import functools
import logging
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from docmt.errors import UserError
from docmt.files import read_lines, write_lines
from docmt.logs import progress
from docmt.text.pipeline import TextPipeline
from docmt.text.settings import TextSettings
from docmt.text.subwords import Subwords, learn_codes, read_codes, write_codes
from docmt.text.tokenizer import check_language, get_tokenizer
from docmt.text.truecaser import Truecaser
from docmt.text.vocabulary import Vocabulary, extra_specials

log = logging.getLogger(__name__)

CHUNK_LINES = 1000

_function: Callable[[str], str]


def map_lines(function: Callable[[str], str], lines: Sequence[str], *, jobs: int, label: str) -> Iterator[str]:
    """Apply a function to each line, in order.

    With one job, no process is started; with more, the function must be picklable. The result does not depend on their
    number. Raises UserError when it is below 1.
    """
    if jobs < 1:
        raise UserError(f"--jobs {jobs}: must be at least 1")
    if jobs == 1 or len(lines) <= CHUNK_LINES:
        yield from map(function, progress(lines, label=label, unit="lines"))
        return
    chunks = [lines[start : start + CHUNK_LINES] for start in range(0, len(lines), CHUNK_LINES)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_set_function, initargs=(function,)) as pool:
        for done in progress(pool.map(_apply, chunks), label=label, unit=f"× {CHUNK_LINES} lines", total=len(chunks)):
            yield from done


def _set_function(function: Callable[[str], str]) -> None:
    global _function
    _function = function


def _apply(lines: Sequence[str]) -> list[str]:
    return [_function(line) for line in lines]


def tokenize_file(source: Path, target: Path, *, lang: str, settings: TextSettings, jobs: int = 1) -> None:
    """Normalize and tokenize a file. Raises UserError when the language is unknown or the file is bad."""
    check_language(lang)
    function = functools.partial(tokenize_line, lang=lang, normalize=settings.normalise, lowercase=settings.lowercase)
    write_lines(target, map_lines(function, read_lines(source), jobs=jobs, label=f"tokenize {lang}"))


def tokenize_line(line: str, *, lang: str, normalize: bool, lowercase: bool) -> str:
    """The tokens of a line, separated by spaces."""
    return " ".join(get_tokenizer(lang, normalize=normalize, lowercase=lowercase).tokenize(line))


def learn_truecaser_file(sources: Sequence[Path], target: Path, *, settings: TextSettings) -> None:
    """Learn a truecaser on all tokenized files together; if `truecase` is false, one that changes nothing."""
    lines = [line for source in sources for line in read_lines(source)]
    if not settings.truecase:
        log.info("truecase is false: the truecaser changes nothing")
        Truecaser(None).save(target)
        return
    truecaser = Truecaser.learn(line.split(" ") for line in progress(lines, label="learn truecaser", unit="lines"))
    log.info("%d words are written in lower case inside sentences", len(truecaser.words or ()))
    truecaser.save(target)


def truecase_file(source: Path, target: Path, *, model: Path, jobs: int = 1) -> None:
    """Truecase a tokenized file."""
    function = functools.partial(_truecase_line, truecaser=Truecaser.load(model))
    write_lines(target, map_lines(function, read_lines(source), jobs=jobs, label="truecase"))


def _truecase_line(line: str, *, truecaser: Truecaser) -> str:
    return " ".join(truecaser.truecase(line.split(" ")))


def learn_bpe_file(sources: Sequence[Path], target: Path, *, settings: TextSettings) -> None:
    """Learn BPE merges on all files together. Raises UserError when they have no text."""
    lines = [line for source in sources for line in read_lines(source)]
    codes = learn_codes(lines, merges=settings.bpe_merges, min_frequency=settings.bpe_min_frequency)
    n_merges = codes.count("\n") - 1
    if n_merges < settings.bpe_merges:
        log.warning("the text yields only %d of %d BPE merges (bpe_merges)", n_merges, settings.bpe_merges)
    write_codes(target, codes)


def apply_bpe_file(source: Path, target: Path, *, codes: Path, jobs: int = 1) -> None:
    """Split a tokenized file into subwords."""
    function = functools.partial(_split_line, subwords=Subwords(read_codes(codes)))
    write_lines(target, map_lines(function, read_lines(source), jobs=jobs, label="apply BPE"))


def _split_line(line: str, *, subwords: Subwords) -> str:
    return " ".join(subwords.split(line.split(" ")))


def learn_vocabulary_file(sources: Sequence[Path], target: Path, *, tags: Sequence[str] = ()) -> None:
    """Learn a vocabulary on all files of subwords together.

    The tags of the languages `tags` become special symbols, together with the masks of document restoration. Raises
    UserError when the files have no text, or a language code is malformed.
    """
    extras = extra_specials(tags) if tags else ()
    lines = (line for source in sources for line in read_lines(source))
    sentences = (line.split() for line in progress(lines, label="vocabulary", unit="lines"))
    vocabulary = Vocabulary.from_sentences(sentences, extras=extras)
    if not any(vocabulary.counts):
        raise UserError(f"no text to learn a vocabulary from: {', '.join(map(str, sources))}")
    log.info("%d symbols, %d of them special", len(vocabulary), len(vocabulary) - sum(map(bool, vocabulary.counts)))
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
    lines = progress(read_lines(source), label=f"restore {lang}", unit="lines")
    write_lines(target, (pipeline.restore(line.split(), lang=lang) for line in lines))
