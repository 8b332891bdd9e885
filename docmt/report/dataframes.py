"""Typed access to pandas, whose own annotations leave the type of most results open."""

from collections.abc import Iterator
from typing import Any, cast

import pandas as pd

Record = dict[str, Any]  # a row, by column


def records(table: pd.DataFrame) -> list[Record]:
    """The rows of a table."""
    return table.to_dict("records")


def column(table: pd.DataFrame, name: str) -> pd.Series:
    """One column; of missing numbers when the table does not have it."""
    found = table[name] if name in table else pd.Series(float("nan"), index=table.index)
    if not isinstance(found, pd.Series):
        raise TypeError(f"the table has several columns {name!r}")
    return found


def keep(table: pd.DataFrame, is_kept: pd.Series) -> pd.DataFrame:
    """The rows for which `is_kept` holds."""
    return cast(pd.DataFrame, table[is_kept])


def select(table: pd.DataFrame, **values: object) -> pd.DataFrame:
    """The rows with a value in each of some columns; a list names several values."""
    for name, value in values.items():
        table = keep(table, column(table, name).isin(value if isinstance(value, list) else [value]))
    return table


def groups(table: pd.DataFrame, name: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each value of a column of words, in the order of first appearance."""
    for value, members in table.groupby(name, sort=False):
        yield str(value), members


def means(table: pd.DataFrame, of: str, *, by: str | list[str]) -> dict[Any, float]:
    """The mean of one column for each value of another one, or each combination of values of several."""
    return pd.Series(table.groupby(by)[of].mean()).to_dict()


def is_missing(value: object) -> bool:
    """Whether a single value is None, NaN or NA."""
    return pd.isna(value) is True
