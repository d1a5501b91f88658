"""Names of ops and variables in branches, as in graphs that contain their branches.

With `tf.disable_v2_behavior()`, ops and variables that a branch of `tf.cond` made were named after
it: `cond/beta1_power`, in checkpoints too. A branch with its own graph would number names anew.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.tf_internals import cond_v2


@contextlib.contextmanager
def of_one_graph() -> Iterator[None]:
    """Within, a branch gives the names that it would give in the graph around it."""
    original = cond_v2.cond_v2

    def named(pred: Any, true_fn: Any, false_fn: Any, name: str = "cond") -> Any:
        used: dict[str, int] = {}
        return original(pred, _within(true_fn, used), _within(false_fn, used), name)

    cond_v2.cond_v2 = named
    try:
        yield
    finally:
        cond_v2.cond_v2 = original


def _within(branch: Callable[[], Any], used: dict[str, int]) -> Callable[[], Any]:
    """A branch in the name scope of its `tf.cond`, whose branches share one count of names."""

    def call() -> Any:
        graph = tf.compat.v1.get_default_graph()
        graph._names_in_use.update(used)
        scope = graph.outer_graph.get_name_scope()
        with graph.name_scope(f"{scope}/" if scope else None):
            result = branch()
        used.update(graph._names_in_use)
        return result

    return call
