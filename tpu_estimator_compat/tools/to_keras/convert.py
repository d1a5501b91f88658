"""From a source to the text of a Keras model and its weights: the steps in their order."""

from __future__ import annotations

import dataclasses

from tpu_estimator_compat.tools.to_keras import text
from tpu_estimator_compat.tools.to_keras.graph import Program
from tpu_estimator_compat.tools.to_keras.operations import refused
from tpu_estimator_compat.tools.to_keras.simplify import simplify


class RefusedError(ValueError):
    """Operations that have no form in Keras, all of them, each with its place."""


@dataclasses.dataclass
class Converted:
    """A program after all steps, and the file that was written of it."""

    program: Program
    written: text.Written


def convert(program: Program) -> Converted:
    """Writes the Keras model of a program; RefusedError names all that has no form in Keras."""
    simplify(program)
    lines = refused(program)
    if lines:
        listed = "\n".join(f"  {line}" for line in lines)
        raise RefusedError(f"{len(lines)} operation(s) have no form in Keras:\n{listed}")
    return Converted(program, text.write(program))
