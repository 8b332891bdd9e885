"""Line-by-line reading of text files, and functions mapped over their lines."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from docmt.files import count_lines, iterate_lines, write_lines
from docmt.logs import progress
from docmt.processes import map_chunks
from docmt.text.tokenizer import get_tokenizer

CHUNK_LINES = 1000


def read_all(sources: Sequence[Path], *, label: str) -> Iterator[str]:
    """Yield the lines of several files, with a progress bar."""
    # Without a total if a file is compressed, since counting its lines would need decompression.
    counts = list(map(count_lines, sources))
    total = None if None in counts else sum(filter(None, counts))
    return progress(itertools.chain.from_iterable(map(iterate_lines, sources)), label=label, unit="lines", total=total)


def map_file(function: Callable[[list[str]], list[str]], source: Path, target: Path, *, jobs: int, label: str) -> None:
    """Apply a picklable function to chunks of lines, in `jobs` processes."""
    chunks = map_chunks(function, iterate_lines(source), size=CHUNK_LINES, jobs=jobs)
    lines = itertools.chain.from_iterable(chunks)
    write_lines(target, progress(lines, label=label, unit="lines", total=count_lines(source)))


def map_tokens(function: Callable[[list[str]], list[str]], lines: list[str]) -> list[str]:
    """Apply a function to the tokens in every line."""
    return [" ".join(function(line.split(" "))) for line in lines]


def tokenize_lines(lines: list[str], *, lang: str, **options: Any) -> list[str]:
    """Tokenize lines. `options` are passed to `get_tokenizer`."""
    # A function and not a method of Tokenizer: the library's objects cannot be pickled, so all processes make their own
    # tokenizer.
    tokenizer = get_tokenizer(lang, **options)
    return [" ".join(tokenizer.tokenize(line)) for line in lines]
