"""Shortlists of the output layer: the target symbols that the words of a batch are likely to become.

With a large vocabulary, the output layer and what sorts its scores take most of a step of the search. A lexical table
from word alignments says which symbols a source is translated by; the others are left out. As in Marian
(Junczys-Dowmunt et al. 2018), whose tables are read, too.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from docmt.errors import UserError
from docmt.files import iterate_lines
from docmt.text.vocabulary import UNK, Vocabulary

N_BEST = 100
"""Target symbols kept for each source symbol, and most frequent symbols kept for all; the numbers of Marian."""


class Shortlist:
    """Target symbols by source symbol: the best ones of a lexical table, and the most frequent ones for all.

    Args:
        targets: ids of target symbols for each id of a source symbol.
        vocabulary: shared by both sides, with its symbols by frequency.
        n_frequent: words kept for all sources. Specials are always kept, and so are the source's own symbols, by which
            names and numbers are copied.
    """

    def __init__(self, targets: dict[int, list[int]], vocabulary: Vocabulary, n_frequent: int) -> None:
        self.targets, self.n_symbols = targets, len(vocabulary)
        self.always = np.arange(min(vocabulary.n_specials + n_frequent, self.n_symbols))

    @classmethod
    def read(cls, path: Path, vocabulary: Vocabulary, n_best: int = N_BEST) -> "Shortlist":
        """Read a lexical table: lines of a target symbol, a source symbol and a probability, as Marian's `lex.s2t`.

        Raises UserError that names the first bad line, or when no symbol of the table is in the vocabulary.
        """
        rows: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
        for number, line in enumerate(iterate_lines(path), start=1):
            try:
                target, source, text = line.split()
                if not 0 <= (probability := float(text)) <= 1:
                    raise ValueError
            except ValueError:
                raise UserError(
                    f"{path}: line {number} must be a target symbol, a source symbol and a probability, with blanks "
                    "between them: make the table with `docmt evaluate lexical-table`"
                ) from None
            target_id, source_id = vocabulary.encode((target, source))
            if UNK not in (target_id, source_id):
                rows[source_id].append((-probability, target_id))
        if not rows:
            raise UserError(f"{path}: none of its symbols is in the vocabulary of the model: make it from its subwords")
        best = {source: [target for _, target in sorted(found)[:n_best]] for source, found in rows.items()}
        return cls(best, vocabulary, n_best)

    def of(self, src_tokens: np.ndarray) -> np.ndarray:
        """Ids of the symbols kept for a batch of source tokens, int64, in increasing order, specials first."""
        is_kept = np.zeros(self.n_symbols, dtype=bool)
        is_kept[self.always] = True
        for source in np.unique(src_tokens).tolist():
            is_kept[source] = True
            is_kept[self.targets.get(source, [])] = True
        return np.flatnonzero(is_kept)


def lexical_table(links: Iterable[Iterable[tuple[str, str]]]) -> Iterator[str]:
    """Lines of a lexical table, for `Shortlist.read`, from the linked symbols (source, target) of sentences."""
    counts = Counter(link for sentence in links for link in sentence)
    totals: Counter[str] = Counter()
    for (source, _), count in counts.items():
        totals[source] += count
    for (source, target), count in sorted(counts.items(), key=lambda item: (item[0][0], -item[1], item[0][1])):
        yield f"{target} {source} {count / totals[source]:.7f}"
