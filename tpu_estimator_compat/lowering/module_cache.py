"""Keeps lowered steps in files: the next start of the same training need not lower them again."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import pathlib
import tempfile
from collections.abc import Mapping, Sequence

import tensorflow as tf

from tpu_estimator_compat.lowering.replica_step import ReplicaStep
from tpu_estimator_compat.lowering.step_module import StepModule
from tpu_estimator_compat.program.graph_ops import Key, key

# What makes a module of a step.
_PACKAGE = pathlib.Path(__file__).parents[1]
_SOURCES = ("lowering/*.py", "program/replica_program.py", "program/stages.py")


@functools.cache
def _sources() -> bytes:
    files = sorted(path for pattern in _SOURCES for path in _PACKAGE.glob(pattern))
    return b"\0".join(path.read_bytes() for path in files)


def name_of(step: ReplicaStep, shapes: Mapping[Key, Sequence[int]]) -> str:
    """Name of a step's file: the same for the same step, TensorFlow and package.

    Args:
      step: the step.
      shapes: as for `stablehlo.lower`.
    """
    feeds = [[t.name, str(shapes.get(key(t), t.shape)), t.dtype.name] for t in step.feeds]
    variables = [
        [op.name, str(tf.TensorShape(op.get_attr("shape"))), tf.as_dtype(op.get_attr("dtype")).name]
        for op in step.variables
    ]
    fetches = [t.name for t in step.program.fetches]
    request = [tf.__version__, feeds, variables, fetches]
    digest = hashlib.sha256(json.dumps(request).encode())
    digest.update(b"\0" + _sources())
    for definition in step.program.definitions():
        digest.update(b"\0" + definition)
    return digest.hexdigest()


def load(directory: pathlib.Path, name: str) -> StepModule | None:
    """The module of that name; None where there is none, or its file is damaged."""
    try:
        described, code = (directory / f"{name}.module").read_bytes().split(b"\n", 1)
        return StepModule.from_json(code, json.loads(described))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def store(directory: pathlib.Path, name: str, module: StepModule) -> None:
    """Keeps a module, if the directory can be written to."""
    # A cache that cannot be written to costs time, nothing else.
    with contextlib.suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
        descriptor, partial = tempfile.mkstemp(dir=directory, prefix=name, suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(json.dumps(module.to_json()).encode() + b"\n" + module.code)
            os.replace(partial, directory / f"{name}.module")
        except BaseException:
            os.unlink(partial)
            raise
