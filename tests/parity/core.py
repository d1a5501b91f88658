"""The core of parity, as a file: what the original computes of small families, from given values.

A command writes `core.json` anew:

    python tests/parity/core.py PYTHON_OF_THE_ORIGINAL
"""

import base64
import json
import os
import pathlib
import sys
import tempfile
from typing import Any

import numpy as np
import tensorflow as tf

if __name__ == "__main__":
    sys.path[:0] = [str(pathlib.Path(__file__).parents[depth]) for depth in (2, 1)]

from support.forks import PLAIN_KERNELS, Forks
from support.sides import running

from parity import runs

FILE = pathlib.Path(__file__).with_name("core.json")
FAMILIES = ("mlp_adam", "convnet_batch_norm", "gan_two_optimizers")
STEPS = 20
EXAMPLES = 3  # of predictions
FEW = 8  # elements of a variable, which are noted; of more, sums

Start = dict[str, list[Any]]
"""First values of variables: type, shape and base64 of the bytes; or of the one that all have."""


def run(family: str, start: str) -> dict[str, Any]:
    """Fields of `setting.Run`."""
    return {
        "family": family,
        "start": start,
        "train_steps": STEPS,
        "save_checkpoints_steps": 10,
        "evaluate_steps": 2,
        "predict": True,
    }


def written(start: Start, folder: pathlib.Path) -> str:
    values = {}
    for name, (kind, shape, code) in start.items():
        found = np.frombuffer(base64.b64decode(code), kind)
        values[name] = np.full(shape, found[0]) if found.size == 1 else found.reshape(shape)
    folder.mkdir(parents=True)
    tf.raw_ops.SaveV2(
        prefix=str(folder / "model.ckpt-0"),
        tensor_names=list(values),
        shape_and_slices=[""] * len(values),
        tensors=[tf.constant(value) for value in values.values()],
    )
    tf.compat.v1.train.update_checkpoint_state(str(folder), str(folder / "model.ckpt-0"))
    return str(folder)


def first_values(checkpoint: str) -> Start:
    reader, found = tf.train.load_checkpoint(checkpoint), {}
    for name in sorted(reader.get_variable_to_shape_map()):
        value = np.asarray(reader.get_tensor(name))
        kept = value.flat[:1] if value.size and np.all(value == value.flat[0]) else value
        code = base64.b64encode(kept.tobytes()).decode()
        found[name] = [value.dtype.name, list(value.shape), code]
    return found


def reduced(observed: dict[str, Any]) -> dict[str, Any]:
    """An observation with sums of large variables, and a few predictions."""
    assert observed["error"] is None, observed["error"]
    result = observed["result"]
    predictions = {
        name: {"type": each["type"], "shape": each["shape"], "": each[""][:EXAMPLES]}
        for name, each in result["predictions"].items()
    }
    folders = {
        folder: {**each, "variables": {n: _sums(v) for n, v in each["variables"].items()}}
        for folder, each in observed["checkpoints"].items()
    }
    kept = ("calls", "log", "events", "files")
    return {
        **{kind: observed[kind] for kind in kept},
        "result": {**result, "predictions": predictions},
        "checkpoints": folders,
    }


def _sums(variable: dict[str, Any]) -> dict[str, Any]:
    """Its values, or their sum, that of their sizes, and that with alternating signs."""
    values = np.array(variable[""], np.float64).ravel()
    if "shape" not in variable or values.size <= FEW:
        return variable
    signs = np.where(np.arange(values.size) % 2, -1.0, 1.0)
    sums = [float(s) for s in (values.sum(), np.abs(values).sum(), (values * signs).sum())]
    return {**variable, "": sums}


def made(original: running.Side, out: pathlib.Path) -> dict[str, Any]:
    """What the original does: by family, the start and the reduced observation."""
    begun = {family: {"family": family, "train_steps": 1} for family in FAMILIES}
    running.run_together(runs.doing(original, begun, out / "begun"))
    starts = {
        family: first_values(runs.model_dir(out / "begun", family) + "/model.ckpt-0")
        for family in FAMILIES
    }
    todo = {
        family: run(family, written(starts[family], out / "starts" / family)) for family in FAMILIES
    }
    running.run_together(runs.doing(original, todo, out / "done"))
    return {
        family: {"start": starts[family], "observed": reduced(running.answer(out / "done", family))}
        for family in FAMILIES
    }


def main(python: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        modules = ("tensorflow", "tensorflow.compat.v1")
        forks = Forks(python, modules, PLAIN_KERNELS)
        original = running.Side("original", forks, "parity", options=runs.OPTIONS)
        FILE.write_text(json.dumps(made(original, pathlib.Path(folder, "runs"))) + "\n")


if __name__ == "__main__":
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    main(*sys.argv[1:])
