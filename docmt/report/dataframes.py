"""Typed access to pandas, whose annotations leave most result types open."""

from collections.abc import Iterator
from typing import Any, cast

import pandas as pd

Record = dict[str, Any]  # a row, by column


def records(table: pd.DataFrame) -> list[Record]:
    """Return the table rows."""
    return table.to_dict("records")


def column(table: pd.DataFrame, name: str) -> pd.Series:
    """Return one column, or missing numbers if the table does not have it."""
    if name not in table:
        return pd.Series(float("nan"), index=table.index)
    values = table[name]
    if not isinstance(values, pd.Series):
        raise TypeError(f"the table has several columns {name!r}")
    return values


def keep(table: pd.DataFrame, is_kept: pd.Series) -> pd.DataFrame:
    """Return the rows for which `is_kept` is True."""
    return cast(pd.DataFrame, table[is_kept])


def select(table: pd.DataFrame, **values: object) -> pd.DataFrame:
    """Return the rows with these column values. A list allows several values."""
    for name, value in values.items():
        if not isinstance(value, list):
            value = [value]
        table = keep(table, column(table, name).isin(value))
    return table


def groups(table: pd.DataFrame, name: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield text column values in order of first appearance, with their rows."""
    for value, members in table.groupby(name, sort=False):
        yield str(value), members


def means(table: pd.DataFrame, of: str, *, by: str | list[str]) -> dict[Any, float]:
    """Return column means by value in another column, or by combination of values in several columns."""
    return pd.Series(table.groupby(by)[of].mean()).to_dict()


def is_missing(value: object) -> bool:
    """True if a single value is None, NaN or NA."""
    return pd.isna(value) is True
