"""Word alignment with the external program eflomal (Östling and Tiedemann 2016)."""

import logging
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Self

from docmt.corpora.documents import text_path
from docmt.errors import UserError
from docmt.evaluation.external_programs import run_program
from docmt.evaluation.scoring import TranslatedTest
from docmt.evaluation.words import lower_case_splitter
from docmt.files import iterate_lines, read_lines, write_lines

log = logging.getLogger(__name__)

PROGRAM = "eflomal-align"
MAX_WORDS = 1023  # eflomal leaves longer sentences unaligned
SAMPLERS = 3
NEIGHBORS = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]

Link = tuple[int, int]
"""Source and target word positions, from 0."""
Pair = tuple[Sequence[str], Sequence[str]]
"""A sentence's source and target words."""


@dataclass(frozen=True)
class Text:
    """Test set words, by sentence and in lower case."""

    source: list[list[str]]
    hypothesis: list[list[str]]
    reference: list[list[str]]

    @classmethod
    def of(cls, test: TranslatedTest) -> Self:
        """Return the words in a test with aligned hypotheses."""
        split_source, split_target = map(lower_case_splitter, (test.src_lang, test.tgt_lang))
        sides = (test.sentences, test.reference)
        return cls([*map(split_source, test.read_source())], *([*map(split_target, side)] for side in sides))

    @property
    def pairs(self) -> list[Pair]:
        """Source and hypothesis by sentence, then source and reference by sentence."""
        return [*zip(self.source, self.hypothesis, strict=True), *zip(self.source, self.reference, strict=True)]


def read_training(test: TranslatedTest) -> list[Pair]:
    """Read the words in the first training sentence pairs, if any."""
    if test.training is None:
        return []
    languages = test.src_lang, test.tgt_lang
    files = [iterate_lines(text_path(test.training, lang)) for lang in languages]
    lines = [list(islice(file, test.settings.aligner_sentences)) for file in files]
    if len(lines[0]) != len(lines[1]):
        raise UserError(
            f"{test.training}: {len(lines[0])} lines in {test.src_lang}, but {len(lines[1])} in {test.tgt_lang}: "
            "both sides must be line-aligned"
        )
    split_source, split_target = map(lower_case_splitter, languages)
    return [(split_source(src), split_target(tgt)) for src, tgt in zip(*lines, strict=True)]


def describe_aligner() -> str:
    """Return the aligner's name, version and procedure for signatures."""
    try:
        version = metadata.version("eflomal")
    except metadata.PackageNotFoundError:  # installed for another Python
        version = "of unknown version"
    return f"eflomal {version} (grow-diag-final-and, {SAMPLERS} samplers)"


def align_words(pairs: Sequence[Pair], *, program: str) -> list[set[Link]]:
    """Align sentence pairs together, in both directions, and merge the two (grow-diag-final-and).

    Two runs over the same text can differ, since eflomal chooses a random seed.
    """
    # Empty and too long sentences have no links. The log contains the number of too long sentences.
    usable = [i for i, pair in enumerate(pairs) if all(0 < len(words) <= MAX_WORDS for words in pair)]
    n_long = sum(max(map(len, pair)) > MAX_WORDS for pair in pairs)
    if n_long:
        log.warning("%d sentence pairs are not aligned, because they have more than %d words", n_long, MAX_WORDS)
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
        directions = []
        for name in ("forward", "reverse"):
            # One line per sentence with source and target positions in Pharaoh format: `0-0 1-2 …`.
            lines = read_lines(paths[name])
            if len(lines) != len(usable) or not all(re.fullmatch(r"(\d+-\d+\s*)*", line) for line in lines):
                raise UserError(f"eflomal wrote alignments in an unknown format: {len(usable)} sentences, {lines[:1]}")
            directions.append([{(int(i), int(j)) for i, j in re.findall(r"(\d+)-(\d+)", line)} for line in lines])
    for i, forward, reverse in zip(usable, *directions, strict=True):
        links[i] = merge_directions(forward, reverse)
    return links


def merge_directions(forward: set[Link], reverse: set[Link]) -> set[Link]:
    """Merge alignments in two directions by grow-diag-final-and (Koehn, Och and Marcu 2003, as in Moses).

    Start from links in both directions, grow to neighboring links in either direction that reach an unlinked word, and
    finally add links in either direction between two unlinked words.
    """
    # Recall comes from the union, precision from the intersection, where the growth starts.
    union, links = forward | reverse, forward & reverse
    sources, targets = {i for i, _ in links}, {j for _, j in links}

    def add(link: Link) -> None:
        links.add(link)
        sources.add(link[0])
        targets.add(link[1])

    waiting = sorted(links)
    for i, j in waiting:  # which grows
        for step_i, step_j in NEIGHBORS:
            link = i + step_i, j + step_j
            # A link between two linked words is already in `links`, or is not added.
            if link in union and (link[0] not in sources or link[1] not in targets):
                add(link)
                waiting.append(link)
    for i, j in [*sorted(forward), *sorted(reverse)]:
        if i not in sources and j not in targets:
            add((i, j))
    return links
