"""Rows as a table of whatever library is there."""
from __future__ import annotations

from typing import Any


def as_table(rows: list[dict[str, Any]]) -> Any:
    """A DataFrame of pandas, or of polars, if there is one, else the list itself."""
    for name in ("pandas", "polars"):
        try:
            library = __import__(name)
        except ImportError:
            continue
        return library.DataFrame(rows)
    return rows
