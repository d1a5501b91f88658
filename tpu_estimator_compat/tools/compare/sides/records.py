"""Writes the parts of a record, as files and as JSON: arrays, checkpoints, results, errors."""

from __future__ import annotations

import glob
import json
import os
import shutil
import traceback
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf


def keep_start(model_dir: str) -> bool:
    """Copies a model_dir's first checkpoint to the folder `start-N`; False if there is none yet."""
    folder, name = os.path.split(model_dir)
    kept = os.path.join(folder, name.replace("model_dir", "start"))
    if os.path.exists(kept):
        return True
    state = tf.train.get_checkpoint_state(model_dir)
    paths = list(state.all_model_checkpoint_paths) if state else []
    if not paths or not glob.glob(glob.escape(paths[0]) + ".index"):
        return False
    copy_checkpoint(paths[0], kept)
    return True


def copy_checkpoint(path: str, target: str) -> None:
    """Copies a checkpoint, with a state file that names it relative to its directory."""
    os.makedirs(target, exist_ok=True)
    for name in glob.glob(glob.escape(path) + ".*"):
        shutil.copy(name, target)
    stem = os.path.basename(path)
    with open(os.path.join(target, "checkpoint"), "w") as state:
        state.write(f'model_checkpoint_path: "{stem}"\n')
        state.write(f'all_model_checkpoint_paths: "{stem}"\n')


def global_step_of(model_dir: str) -> int:
    """The global step of the latest checkpoint; 0 where there is none."""
    path = tf.train.latest_checkpoint(model_dir)
    if path is None:
        return 0
    reader = tf.train.load_checkpoint(path)
    return int(reader.get_tensor("global_step")) if reader.has_tensor("global_step") else 0


def save_arrays(path: str, arrays: dict[str, Any]) -> None:
    """Writes arrays to `path`.npz, and their names to `path`.json."""
    names = sorted(arrays)
    # Names cannot be entries of an archive: "/" would make folders.
    entries = {f"a{i}": plain(arrays[name]) for i, name in enumerate(names)}
    np.savez(path + ".npz", **entries)
    with open(path + ".json", "w") as file:
        json.dump(names, file)


def plain(value: Any) -> Any:
    """An array of fixed-size elements, as archives hold them without pickling."""
    array = np.asarray(value)
    return array.astype(np.bytes_) if array.dtype == object else array


def scalar(value: Any) -> Any:
    """A metric as JSON values; exact for floats of any width."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.shape:
        return {"dtype": str(array.dtype), "value": None}
    return {"dtype": str(array.dtype), "value": repr(array.item())}


def stacked(predictions: list[Any]) -> dict[str, Any]:
    if not predictions:
        return {}
    if not isinstance(predictions[0], dict):
        predictions = [{"output": p} for p in predictions]
    stacked = {}
    for key in predictions[0]:
        values = [np.asarray(p[key]) for p in predictions]
        same = len({v.shape for v in values}) == 1
        # Batches, of which the last may be smaller, have their examples along the first axis.
        stacked[str(key)] = np.stack(values) if same else np.concatenate(values)
    return stacked


def described(error: BaseException | None) -> dict[str, Any] | None:
    """An error as JSON values, with its traceback without the recorder's frames."""
    if error is None:
        return None
    shown = traceback.TracebackException.from_exception(error)
    _strip(shown)
    return {
        "type": type(error).__name__,
        "message": str(error),
        "errno": getattr(error, "errno", None),
        "traceback": "".join(shown.format()),
    }


_OBSERVED = os.path.join("keras_model", "calls.py")


def _strip(shown: traceback.TracebackException | None) -> None:
    """Removes the frames of the code that runs and records the script."""
    here = os.path.dirname(os.path.abspath(__file__))
    while shown is not None:
        kept = [
            frame
            for frame in shown.stack
            if os.path.dirname(os.path.abspath(frame.filename)) != here
            and "runpy" not in frame.filename
            and not frame.filename.endswith(_OBSERVED)
        ]
        shown.stack = traceback.StackSummary.from_list(kept)
        shown = shown.__cause__ or shown.__context__
