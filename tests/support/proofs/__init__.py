"""Proofs that served names work: functions that get what a row's name stands for, and call it.

A proof is registered for the rows that it is run for. Its module stands where the package has the
module or folder that serves the rows; `names` has those that other rooms or TensorFlow serve.
`tests/old_names/legacy/test_names.py` runs them.
"""

import contextlib
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import pytest
import tensorflow.compat.v1 as tf

from support.sessions import session as session_of

# An assertion of a proof says what it compared.
pytest.register_assert_rewrite(
    *(f"{__name__}.{part}" for part in ("canned", "contrib", "names", "served"))
)

Proof = Callable[..., None]
PROOFS: dict[Proof, list[str]] = {}
"""The rows of each proof: names of the table, or `row:attribute` for a part of a module."""


def proves(*rows: str) -> Callable[[Proof], Proof]:
    def register(proof: Proof) -> Proof:
        PROOFS.setdefault(proof, []).extend(rows)
        return proof

    return register


def answers(questions: dict[str, tuple[Callable[[Any], Any], Any]]) -> None:
    """Registers a proof for each row: what is asked of the thing has this answer."""
    for row, (ask, answer) in questions.items():

        def is_answered(thing: Any, ask=ask, answer=answer) -> None:
            found = ask(thing)
            assert found == answer, found

        proves(row)(is_answered)


def proved_rows() -> set[str]:
    """Every row that a proof is registered for, whatever has been imported before."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    return {row.partition(":")[0] for rows in PROOFS.values() for row in rows}


def below(namespace: str, names: str) -> list[str]:
    """Full names of names in a namespace; `.` stands for the namespace itself."""
    return [namespace if name == "." else f"{namespace}.{name}" for name in names.split()]


@contextlib.contextmanager
def graph():
    with tf.Graph().as_default() as new:
        tf.set_random_seed(1)
        yield new


def evaluate(build: Callable[[], Any], feeds: Any = None) -> Any:
    """What the tensors that `build` makes in a graph of its own are, after initialization."""
    with graph() as new, session_of(new) as session:
        fetches = build()
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(tf.tables_initializer())
        return session.run(fetches, feeds)


def variables_of(build: Callable[[], Any]) -> list[str]:
    with graph():
        build()
        return [variable.op.name for variable in tf.global_variables()]
