"""Rows in chunks, so that the scores of all symbols are never stored for all of them."""

from torch import Tensor

CHUNK_SCORES = {"cpu": 2**21, "cuda": 2**26}
"""Scores of a chunk: on a CPU they stay in the cache; on a GPU fewer, larger chunks mean fewer launches."""


def chunks(rows: Tensor, n_symbols: int) -> tuple[Tensor, ...]:
    """Views of rows that together have few enough scores."""
    return rows.split(max(1, CHUNK_SCORES["cuda" if rows.is_cuda else "cpu"] // n_symbols))
