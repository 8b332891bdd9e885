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
        split_source = lower_case_splitter(test.src_lang)
        split_target = lower_case_splitter(test.tgt_lang)
        return cls(
            list(map(split_source, test.read_source())),
            list(map(split_target, test.sentences)),
            list(map(split_target, test.reference)),
        )

    @property
    def pairs(self) -> list[Pair]:
        """Source and hypothesis by sentence, then source and reference by sentence."""
        return [*zip(self.source, self.hypothesis, strict=True), *zip(self.source, self.reference, strict=True)]


def read_training(test: TranslatedTest) -> list[Pair]:
    """Read the words in the first training sentence pairs, if any."""
    if test.training is None:
        return []
    sides = []
    for lang in (test.src_lang, test.tgt_lang):
        lines = islice(iterate_lines(text_path(test.training, lang)), test.settings.aligner_sentences)
        sides.append(list(map(lower_case_splitter(lang), lines)))
    src, tgt = sides
    if len(src) != len(tgt):
        raise UserError(
            f"{test.training}: {len(src)} lines in {test.src_lang}, but {len(tgt)} in {test.tgt_lang}: "
            "both sides must be line-aligned"
        )
    return list(zip(src, tgt, strict=True))


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
    usable = []
    n_long = 0
    for i, (source, target) in enumerate(pairs):
        if max(len(source), len(target)) > MAX_WORDS:
            n_long += 1
        elif source and target:
            usable.append(i)
    if n_long:
        log.warning("%d sentence pairs are not aligned, because they have more than %d words", n_long, MAX_WORDS)
    links: list[set[Link]] = [set() for _ in pairs]
    if not usable:
        return links
    with tempfile.TemporaryDirectory(prefix="docmt-align-") as folder:
        source_path = Path(folder, "source")
        target_path = Path(folder, "target")
        forward_path = Path(folder, "forward")
        reverse_path = Path(folder, "reverse")
        write_lines(source_path, (" ".join(pairs[i][0]) for i in usable), checksum=False)
        write_lines(target_path, (" ".join(pairs[i][1]) for i in usable), checksum=False)
        command = [program, "-s", str(source_path), "-t", str(target_path)]
        command += ["-f", str(forward_path), "-r", str(reverse_path), "--n-samplers", str(SAMPLERS)]
        run_program(command, name="eflomal")
        directions = []
        for path in (forward_path, reverse_path):
            # One line per sentence with source and target positions in Pharaoh format: `0-0 1-2 …`.
            lines = read_lines(path)
            if len(lines) != len(usable) or not all(re.fullmatch(r"(\d+-\d+\s*)*", line) for line in lines):
                raise UserError(f"eflomal wrote alignments in an unknown format: {len(usable)} sentences, {lines[:1]}")
            line_links = []
            for line in lines:
                line_links.append({(int(i), int(j)) for i, j in re.findall(r"(\d+)-(\d+)", line)})
            directions.append(line_links)
    for i, forward, reverse in zip(usable, *directions, strict=True):
        links[i] = merge_directions(forward, reverse)
    return links


def merge_directions(forward: set[Link], reverse: set[Link]) -> set[Link]:
    """Merge alignments in two directions by grow-diag-final-and (Koehn, Och and Marcu 2003, as in Moses).

    Start from links in both directions, grow to neighboring links in either direction that reach an unlinked word, and
    finally add links in either direction between two unlinked words.
    """
    # Recall comes from the union, precision from the intersection, where the growth starts.
    union = forward | reverse
    links = sorted(forward & reverse)
    sources = {i for i, _ in links}
    targets = {j for _, j in links}

    def add(link: Link) -> None:
        links.append(link)
        sources.add(link[0])
        targets.add(link[1])

    for i, j in links:  # which grows
        for step_i, step_j in NEIGHBORS:
            link = i + step_i, j + step_j
            # A link between two linked words is already in `links`, or is not added.
            if link in union and (link[0] not in sources or link[1] not in targets):
                add(link)
    for i, j in [*sorted(forward), *sorted(reverse)]:
        if i not in sources and j not in targets:
            add((i, j))
    return set(links)
