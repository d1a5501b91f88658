"""Checks that a checkpoint in a model_dir can be written, read back and continued."""

from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from tpu_estimator_compat.engine.files import removal
from tpu_estimator_compat.tools.doctor import probing
from tpu_estimator_compat.tools.doctor.report import CheckResult, Status

CHECK = "checkpoint"


def observe(folder: str) -> dict[str, Any]:
    """Trains into a new folder, reads its checkpoint, deletes both: a probe for a child process.

    Returns:
      `variables`, the number of variables compared; `differing`, the names whose values in the
      checkpoint are wrong; `lost`, the names whose values a second training did not restore.
    """
    import numpy as np
    import tensorflow as tf

    from tpu_estimator_compat.engine.checkpoint.state import latest
    from tpu_estimator_compat.engine.files import user_files
    from tpu_estimator_compat.tools.doctor import models

    def train(steps: int) -> models.Values:
        params = {"network": "mlp", "rate": 0.0}
        return models.train(models.network, folder, params, runtime="tensorflow", steps=steps)

    tf.io.gfile.makedirs(folder)
    try:
        written = train(models.STEPS).last
        reader = tf.train.load_checkpoint(user_files.readable(str(latest(folder))))
        again = train(models.STEPS + 1).first
        return {
            "variables": len(written),
            "differing": [
                name
                for name, value in written.items()
                if not reader.has_tensor(name) or not np.array_equal(reader.get_tensor(name), value)
            ],
            "lost": [n for n, value in written.items() if not np.array_equal(again[n], value)],
        }
    finally:
        removal.remove(folder, "probe")


def check(
    model_dir: str | None, probe: Callable[[dict[str, Any]], probing.Outcome]
) -> list[CheckResult]:
    """Has `probe` run `observe` on a new folder in `model_dir`; None for a temporary folder."""
    with _own_folder(model_dir) as folder:
        outcome = probe({"folder": folder})
    place = "a temporary folder" if model_dir is None else model_dir
    if outcome.answer is None:
        advice = f"{outcome.advice} See that {place} can be written to and has space left."
        if not removal.is_local(folder):
            advice += f" If {folder} is there, delete it."
        return [CheckResult(CHECK, Status.FAILURE, f"{place}: {outcome.error}", advice)]
    answer = outcome.answer
    wrong = [
        f"{len(answer[key])} {words}, such as {answer[key][0]}"
        for key, words in (
            ("differing", "are read with other values"),
            ("lost", "are not restored by a second training"),
        )
        if answer[key]
    ]
    if wrong:
        text = f"{place}: of {answer['variables']} variables {', and '.join(wrong)}"
        advice = "Keep no checkpoints there. Try another --model_dir."
        return [CheckResult(CHECK, Status.FAILURE, text, advice)]
    text = f"{place}: {answer['variables']} variables written, read and continued, bit by bit"
    return [CheckResult(CHECK, Status.OK, text)]


@contextlib.contextmanager
def _own_folder(model_dir: str | None) -> Iterator[str]:
    """Path of a new folder in `model_dir`, or where this is to be made; deleted after use."""
    name = f"doctor_{uuid.uuid4().hex[:12]}"
    if model_dir is None:
        with tempfile.TemporaryDirectory(prefix="doctor_") as made:
            yield os.path.join(made, name)
        return
    if not removal.is_local(model_dir):
        yield f"{model_dir.rstrip('/')}/{name}"
        return
    path = pathlib.Path(os.path.abspath(os.path.expanduser(model_dir)))
    path = next(folder for folder in (path, *path.parents) if os.path.lexists(folder))
    try:
        yield str(path / name)
    finally:
        removal.remove(path / name, "probe")
