"""Proofs that served names work: functions that get what a row's name stands for, and call it.

A proof is registered for the rows that it is run for. `test_proofs.py` runs each of them with what
the namespaces give for the row's name.
"""

import collections
import contextlib
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

Proof = Callable[[Any], None]
PROOFS: dict[str, list[Proof]] = collections.defaultdict(list)


def proves(*names: str) -> Callable[[Proof], Proof]:
    """Registers a proof for rows of the table."""

    def register(proof: Proof) -> Proof:
        for name in names:
            PROOFS[name].append(proof)
        return proof

    return register


def below(namespace: str, names: str) -> list[str]:
    """Full names of names in a namespace; `.` stands for the namespace itself."""
    return [namespace if name == "." else f"{namespace}.{name}" for name in names.split()]


@contextlib.contextmanager
def graph():
    """A new default graph, with a seed."""
    with tf.Graph().as_default() as new:
        tf.set_random_seed(1)
        yield new


def evaluate(build: Callable[[], Any], feeds: Any = None) -> Any:
    """What the tensors that `build` makes in a graph of its own are, after initialization."""
    with graph() as new, tf.Session(graph=new) as session:
        fetches = build()
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(tf.tables_initializer())
        return session.run(fetches, feeds)


def variables_of(build: Callable[[], Any]) -> list[str]:
    """The names of the variables that `build` makes in a graph of its own."""
    with graph():
        build()
        return [variable.op.name for variable in tf.global_variables()]
