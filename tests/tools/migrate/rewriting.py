"""Modules before and after `migrate`."""

import ast
from collections.abc import Callable

import pytest

from tpu_estimator_compat.tools.migrate.codemod import migrate_text
from tpu_estimator_compat.tools.scan.module import scan_text


def each_rewritten(cases: dict[str, tuple[str, str]]) -> Callable[..., None]:
    """A test for each pair of texts: the first becomes the second, which stays as it is."""

    @pytest.mark.parametrize(("before", "after"), cases.values(), ids=cases)
    def test(before: str, after: str) -> None:
        migration = migrate_text(before, "a.py")
        assert migration.after == after
        assert migration.left == []
        assert migration.mended == len(scan_text(before, "a.py"))
        ast.parse(after)
        again = migrate_text(after, "a.py")
        assert again.after == after
        assert again.found == again.left == []

    return test
