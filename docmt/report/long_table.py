"""The long table as pandas reads it: one row per score of each run."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from docmt.checksums import open_verified
from docmt.errors import UserError
from docmt.report.dataframes import column, keep, records
from docmt.report.score_files import COLUMNS, NEEDED, TYPES, check_references, gather_rows


def gather_scores(paths: Sequence[Path]) -> pd.DataFrame:
    """The long table of score files, empty without any; raises UserError as `gather_rows` does."""
    return pd.DataFrame(gather_rows(paths) if paths else []).reindex(columns=COLUMNS).astype(TYPES)


def read_scores_table(path: Path) -> pd.DataFrame:
    """Read `scores.csv`. Raises UserError when the file has another form, or as `check_references` does."""
    table = read_table(path, needed=NEEDED, words=[name for name, kind in TYPES.items() if kind == "string"])
    try:
        scores = table.reindex(columns=COLUMNS).astype(TYPES)
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}: a column of numbers contains something else ({error})") from None
    check_references(records(keep(scores, column(scores, "data").notna())))
    return scores


def read_table(path: Path, *, needed: Sequence[str], words: Sequence[str] = ()) -> pd.DataFrame:
    """Read a CSV file in which only an empty cell is a missing value, and the columns `words` are kept as text.

    Raises UserError when it is missing, is not CSV, or lacks a column.
    """
    try:
        # Names are data: a system may be called "NA", and a commit may be made of digits only.
        types: dict[Hashable, Any] = dict.fromkeys(words, "string")
        with open_verified(path) as file:
            table = pd.read_csv(file, keep_default_na=False, na_values=[""], encoding="utf-8", dtype=types)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a CSV table ({error})") from None
    missing = next((column for column in needed if column not in table), None)
    if missing:
        raise UserError(f"{path}: column {missing!r} is missing")
    return table
