"""Checks of every row of a table in one test, which tells of every row that fails."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def failures(check: Callable[[Any], None], rows: Iterable[Any]) -> list[str]:
    """What a check says of the rows that it fails for."""
    said = []
    for row in rows:
        try:
            check(row)
        except (Exception, pytest.fail.Exception) as error:
            said.append(f"{row}: {type(error).__name__}: {error}")
    return said
