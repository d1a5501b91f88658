"""From a source to the text of a Keras model and its weights: the steps in their order."""

from __future__ import annotations

import dataclasses

from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tools.to_keras import text
from tpu_estimator_compat.tools.to_keras.graph import Program
from tpu_estimator_compat.tools.to_keras.operations import refused
from tpu_estimator_compat.tools.to_keras.scans import find_scans
from tpu_estimator_compat.tools.to_keras.script import Modes
from tpu_estimator_compat.tools.to_keras.simplify import simplify
from tpu_estimator_compat.tools.to_keras.training import Training


class RefusedError(ValueError):
    """Operations that have no form in Keras, all of them, each with its place."""


@dataclasses.dataclass
class Converted:
    """A program after all steps, and the file that was written of it."""

    program: Program
    written: text.Written
    training: Training | None = None


def convert(program: Program) -> Converted:
    """Writes the Keras model of a program; RefusedError names all that has no form in Keras."""
    simplify(program)
    find_scans(program)
    lines = refused(program)
    if lines:
        listed = "\n".join(f"  {line}" for line in lines)
        raise RefusedError(f"{len(lines)} operation(s) have no form in Keras:\n{listed}")
    return Converted(program, text.write(program))


def of_modes(modes: Modes) -> Converted:
    """The same of a model_fn."""
    mode = modes.modes[ModeKeys.PREDICT]
    return convert(mode.read(mode.predictions, modes.weights))
