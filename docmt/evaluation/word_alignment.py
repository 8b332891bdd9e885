"""Word alignments: by eflomal (Östling and Tiedemann 2016), run as a program, or from a file of Pharaoh pairs."""

import logging
import re
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from docmt.decoding.shortlist import lexical_table
from docmt.errors import UserError
from docmt.evaluation.external_programs import NotComputableError, find_program, run_program
from docmt.files import read_lines, write_lines

log = logging.getLogger(__name__)

PROGRAM = "eflomal-align"
MAX_WORDS = 1023
"""eflomal leaves longer sentences unaligned."""
SAMPLERS = 3
NEIGHBORS = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]

Link = tuple[int, int]
"""Positions of a source and of a target word, from 0."""
Pair = tuple[Sequence[str], Sequence[str]]
"""Source and target words of a sentence."""


def find_aligner() -> str:
    """The path of eflomal. Raises NotComputableError when it is not installed."""
    program = find_program(PROGRAM)
    if program is None:
        raise NotComputableError("the word aligner is not installed: pip install eflomal (needs a C compiler)")
    return program


def describe_aligner() -> str:
    """Name, version and procedure of the aligner, for signatures."""
    try:
        version = metadata.version("eflomal")
    except metadata.PackageNotFoundError:  # installed for another Python
        version = "of unknown version"
    return f"eflomal {version} (grow-diag-final-and, {SAMPLERS} samplers)"


def align_words(pairs: Sequence[Pair], *, program: str) -> list[set[Link]]:
    """Align sentence pairs together, in both directions, and merge the two (grow-diag-final-and).

    Two runs over the same text may differ: eflomal chooses its own seed. Raises UserError when it fails, or prints
    something unexpected.
    """
    # Empty sentences and those longer than `MAX_WORDS` get no links; the latter are counted in the log.
    usable = [i for i, pair in enumerate(pairs) if all(0 < len(words) <= MAX_WORDS for words in pair)]
    n_long = sum(max(map(len, pair)) > MAX_WORDS for pair in pairs)
    if n_long:
        log.warning("%d sentence pairs of more than %d words are not aligned", n_long, MAX_WORDS)
    links: list[set[Link]] = [set() for _ in pairs]
    if not usable:
        return links
    with tempfile.TemporaryDirectory(prefix="docmt-align-") as folder:
        paths = {name: Path(folder) / name for name in ("source", "target", "forward", "reverse")}
        for side, name in enumerate(("source", "target")):
            write_lines(paths[name], (" ".join(pairs[i][side]) for i in usable), checksum=False)
        files = {"-s": "source", "-t": "target", "-f": "forward", "-r": "reverse"}
        options = [word for option, name in files.items() for word in (option, str(paths[name]))]
        run_program([program, *options, "--n-samplers", str(SAMPLERS)], name="eflomal")
        used = [pairs[i] for i in usable]
        forward, reverse = (read_alignments(paths[name], used) for name in ("forward", "reverse"))
    for i, one, other in zip(usable, forward, reverse, strict=True):
        links[i] = merge_directions(one, other)
    return links


def write_lexical_table(src: Path, tgt: Path, out: Path) -> None:
    """Align two files of subwords, and write which target symbols stand for each source symbol, see `Shortlist.read`.

    Raises UserError when there is no aligner, the files differ in their number of lines, or they hold no words.
    """
    texts = [[line.split() for line in read_lines(file)] for file in (src, tgt)]
    if len(texts[0]) != len(texts[1]):
        raise UserError(f"{src} has {len(texts[0])} lines, but {tgt} has {len(texts[1])}")
    pairs = list(zip(*texts, strict=True))
    if not any(src_words and tgt_words for src_words, tgt_words in pairs):
        raise UserError(f"{src} and {tgt} have no sentence pairs with words: there is nothing to align")
    try:
        links = align_words(pairs, program=find_aligner())
    except NotComputableError as error:
        raise UserError(str(error)) from None
    linked = ([(pair[0][i], pair[1][j]) for i, j in found] for pair, found in zip(pairs, links, strict=True))
    write_lines(out, lexical_table(linked))


def read_alignments(path: Path, pairs: Sequence[Pair]) -> list[set[Link]]:
    """Read alignments, one line a sentence: `0-0 1-2 …` for source-target positions from 0 (the format of Pharaoh).

    Raises UserError that names the first line that has another form or does not fit its sentence.
    """
    lines = read_lines(path)
    if len(lines) != len(pairs):
        raise UserError(f"{path}: {len(lines)} lines of alignments for {len(pairs)} sentence pairs")
    alignments = []
    for number, (line, (source, target)) in enumerate(zip(lines, pairs, strict=True), start=1):
        links = set()
        for text in line.split():
            if not re.fullmatch(r"[0-9]+-[0-9]+", text):
                raise UserError(f"{path}: line {number}: {text!r} is not a pair of positions such as 0-0")
            i, j = map(int, text.split("-"))
            if i >= len(source) or j >= len(target):
                raise UserError(
                    f"{path}: line {number}: {text} is outside a sentence of {len(source)} source and {len(target)} "
                    "target words; positions count the words of our tokenizer from 0"
                )
            links.add((i, j))
        alignments.append(links)
    return alignments


def merge_directions(forward: set[Link], reverse: set[Link]) -> set[Link]:
    """Merge alignments of two directions by grow-diag-final-and (Koehn, Och and Marcu 2003; as in Moses).

    Start from the links of both, grow to neighboring links of either that reach an unlinked word, and finally add links
    of either between two unlinked words.
    """
    # Recall comes from the union, precision from the intersection, where the growth starts.
    union, links = forward | reverse, forward & reverse
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    waiting = sorted(links)
    while waiting:
        i, j = waiting.pop(0)
        for step_i, step_j in NEIGHBORS:
            link = i + step_i, j + step_j
            if link in union and link not in links and (link[0] not in sources or link[1] not in targets):
                links.add(link)
                sources.add(link[0])
                targets.add(link[1])
                waiting.append(link)
    for direction in (forward, reverse):
        for i, j in sorted(direction):
            if i not in sources and j not in targets:
                links.add((i, j))
                sources.add(i)
                targets.add(j)
    return links
