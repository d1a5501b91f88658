"""Saves a training step in a folder, to be tried on a chip where only JAX is installed."""

import dataclasses
import json
import pathlib
import shutil

import jax
import numpy as np
import tensorflow as tf
from jax import export
from jax._src.interpreters.mlir import module_to_bytecode
from jax.extend.mlir import ir
from jax.interpreters import mlir

from chips import run_step
from tpu_estimator_compat.engine.functions import eager, tuning
from tpu_estimator_compat.engine.jax import meshes
from tpu_estimator_compat.engine.jax.module import operations
from tpu_estimator_compat.engine.jax.step_function import StepFunction

PLATFORMS = ("cpu", "cuda", "tpu")
SMALL = 2**16  # bytes of an array up to which it is saved, not drawn
PRODUCTS = {"stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution"}
HIGHEST = "#stablehlo<precision HIGHEST>"


class SavesStep(tf.compat.v1.train.SessionRunHook):
    """Writes a folder with the training's step, and the script `run_step.py`, which describes it.

    The training has `runtime="jax"` and one replica. The values are those before the first step.
    """

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)

    def after_create_session(self, session, coord):
        runner = session.runner
        step = runner.step
        variables = {n: np.asarray(runner.store.peek(n)) for n in step.function(1).names}
        with eager.eager_mode():
            chunk = runner._elements.next(session.iterator(), run_step.STEPS, step.stage)
        self._folder.mkdir(parents=True)
        save(
            self._folder,
            step.module,
            step.device.number_of_loss,
            variables,
            list(map(np.asarray, chunk.feeds)),
        )


def save(folder, module, loss, variables, feeds):
    """Writes a step's files, and the results that JAX's CPU has here for the same values."""
    loop = tuning.NUMBERS.steps_of_dispatch(sum(feed[0].nbytes for feed in feeds), None)
    exact = precise(module)
    (folder / "one.highest").write_bytes(exported(exact, 1, loss))
    (folder / "one.default").write_bytes(exported(module, 1, loss))
    (folder / "loop.default").write_bytes(exported(module, loop, loss))
    values = variables | {f"feed {i}": feed for i, feed in enumerate(feeds)}
    drawn = {name: described(value, i) for i, (name, value) in enumerate(values.items())}
    about = {
        "loss": loss,
        "loop": loop,
        "variables": list(variables),
        "feeds": list(values)[len(variables) :],
        "drawn": {name: how for name, how in drawn.items() if how},
    }
    (folder / "step.json").write_text(json.dumps(about))
    np.savez(folder / "values.npz", **{n: v for n, v in values.items() if not drawn[n]})
    with jax.enable_x64(True):
        of_cpu = run_step.reference(run_step.Step(folder))
    (folder / "reference.json").write_text(json.dumps(of_cpu))
    (folder / "estimates.json").write_text("{}")
    shutil.copy(run_step.__file__, folder)


def described(value, seed):
    """How to draw many floats, with their mean and deviation; None for what is saved as it is."""
    if value.nbytes <= SMALL or not np.issubdtype(value.dtype, np.floating):
        return None  # random integers would not be valid ids or labels
    mean, deviation = value.mean(dtype=np.float64), value.std(dtype=np.float64)
    given = {"mean": float(mean), "deviation": float(deviation), "seed": seed}
    return {"shape": value.shape, "dtype": value.dtype.name, **given}


def precise(step):
    """The same step with full float32 products, where chips round their inputs by default."""
    with mlir.make_ir_context():
        module = ir.Module.parse(step.code)
        both = ir.Attribute.parse(f"[{HIGHEST}, {HIGHEST}]")
        for operation in operations(module.operation):
            if operation.name in PRODUCTS:
                operation.attributes["precision_config"] = both
        return dataclasses.replace(step, code=module_to_bytecode(module))


def exported(step, most, loss):
    """The function of up to `most` steps on one device, as `jax.export.deserialize` reads it.

    It takes the variables, the feeds [most, ...], and int64 [steps, key, position].
    """
    mesh = meshes.mesh((jax.devices("cpu")[0],), 1)
    made = StepFunction(step, mesh, most, loss)
    with jax.enable_x64(True):
        found = export.export(made.function, platforms=PLATFORMS)(*made.shapes())
        return bytes(found.serialize())
