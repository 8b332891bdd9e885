"""Reading files of text line by line, and mapping functions over their lines."""

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
    """The lines of several files, one at a time, with a progress bar."""
    # The bar has a total only if all files can be counted; a compressed file cannot without reading it.
    counts = [count for source in sources if (count := count_lines(source)) is not None]
    total = sum(counts) if len(counts) == len(sources) else None
    return progress(itertools.chain.from_iterable(map(iterate_lines, sources)), label=label, unit="lines", total=total)


def map_file(function: Callable[[list[str]], list[str]], source: Path, target: Path, *, jobs: int, label: str) -> None:
    """Apply a picklable function to chunks of the lines of a file, in `jobs` processes."""
    chunks = map_chunks(function, iterate_lines(source), size=CHUNK_LINES, jobs=jobs)
    lines = itertools.chain.from_iterable(chunks)
    write_lines(target, progress(lines, label=label, unit="lines", total=count_lines(source)))


def map_tokens(function: Callable[[list[str]], list[str]], lines: list[str]) -> list[str]:
    """Apply a function to the tokens of each line."""
    return [" ".join(function(line.split(" "))) for line in lines]


def tokenize_lines(lines: list[str], *, lang: str, **options: Any) -> list[str]:
    """Tokenize each line; `options` are those of `get_tokenizer`."""
    # A function of the module and not the method of a tokenizer: the library's objects cannot be pickled, so each
    # process makes its own tokenizer.
    tokenizer = get_tokenizer(lang, **options)
    return [" ".join(tokenizer.tokenize(line)) for line in lines]
