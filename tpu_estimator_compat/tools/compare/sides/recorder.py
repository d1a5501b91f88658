"""Records the losses, variables and results of a script's estimators, unseen by the script.

The recorder observes the calls of estimators, and adds a hook to `train`. A directory in the
run's folder replaces each model_dir, and training ends after a number of steps. The folder then
holds:

- `record.json`: everything but arrays, see `Recorder.finish`;
- `losses.jsonl`: a line per training step, written as it ends: `[step, loss, checksums of input]`;
- `input.npz`, `first_update.npz`, `activations.npz`, `predictions-N.npz`: arrays, with their names
  in a `.json` file beside;
- `model_dir-N`, `start-N`: the N-th model_dir, and the checkpoint that its training began with;
- `export-N`: the N-th export.
"""

from __future__ import annotations

import inspect
import json
import os
import platform
import random
import resource
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

# Relative: on the original's side, this package has another name.
from . import activations, randomness, records
from .recording_hook import RecordingHook

SEED = 1
"""Seed for `random`, `numpy.random` and configs without `tf_random_seed`."""


class Recorder:
    """Records one run of a script.

    Args:
      calls: the module `calls` of `keras_model`, by which the estimators' calls are observed.
      job: `folder`, of the record; `first_step`, whether to record activations and gradients of the
        first step; `steps`, the most steps of a training or evaluation; `checkpoint`, a path to
        start from, or the folder of a run with the same starts, or None; `disturb`, None, or a seed
        to move trainable variables before each step by one unit in the last place, up or down;
        `config`, arguments to replace in the script's RunConfig; `started`, the time when the
        process was started, in seconds since the epoch.
    """

    def __init__(self, calls: Any, job: dict[str, Any]):
        self._calls = calls
        self.job = job
        self.undrawn: list[str] = []
        self.operations: list[dict[str, Any]] = []
        self.folder = job["folder"]
        self.calls: list[dict[str, Any]] = []
        self.trainable: list[str] = []
        self._step_ends: list[float] = []
        self._model_dirs: dict[str, str] = {}
        self._last_step: dict[str, int] = {}
        self._exports = 0
        self._specs: list[Any] = []
        self._inputs: list[Any] = []
        self._losses = open(os.path.join(self.folder, "losses.jsonl"), "a")  # noqa: SIM115

    def record(self, estimators: Any, run: Callable[[], None]) -> int:
        """Runs the script, writes `record.json` at its end, and returns 1 if it failed, else 0."""
        random.seed(SEED)  # for scripts that shuffle without a seed
        np.random.seed(SEED)
        error: BaseException | None = None
        self._run_config = estimators.RunConfig
        with self._calls.observing(self.observe), randomness.seeds_by_place():
            try:
                run()
            except SystemExit as left:
                error = left if left.code not in (None, 0) else None
            except BaseException as raised:
                error = raised
        self.finish(error)
        return 0 if error is None else 1

    def observe(self, call: Any) -> Any:
        observers = {
            "__init__": self._init,
            "train": self._train,
            "evaluate": self._evaluate,
            "predict": self._predict,
            "export_saved_model": self._export,
            "export_savedmodel": self._export,
        }
        return observers[call.name](call) if call.name in observers else call.make()

    def _init(self, call: Any) -> None:
        given = call.arguments
        config = given.get("config") or self._run_config()
        given["model_dir"] = self._own_model_dir(
            str(given.get("model_dir") or config.model_dir or "(none)")
        )
        changes: dict[str, Any] = {"model_dir": given["model_dir"]}
        if config.tf_random_seed is None:
            changes["tf_random_seed"] = SEED
        if config.save_checkpoints_steps is None and config.save_checkpoints_secs is None:
            changes["save_checkpoints_steps"] = max(self.job["steps"], 1)
        if getattr(config, "tpu_config", None) is not None:
            # With `use_tpu=True`, hooks run once per loop.
            changes["tpu_config"] = config.tpu_config._replace(iterations_per_loop=1)
        changes.update(self.job["config"])
        given["config"] = config.replace(**changes)
        if "model_fn" in given:
            given["model_fn"] = self._watched(given["model_fn"])
        call.make()

    def _own_model_dir(self, wanted: str) -> str:
        if wanted not in self._model_dirs:
            own = os.path.abspath(wanted)
            if os.path.dirname(own) != os.path.abspath(self.folder):  # the recorder has not made it
                number = 0
                while os.path.exists(os.path.join(self.folder, f"model_dir-{number}")):
                    number += 1
                own = os.path.join(self.folder, f"model_dir-{number}")
            os.makedirs(own, exist_ok=True)
            number = int(own.rpartition("-")[2])
            start = self._start(number)
            if start:
                records.copy_checkpoint(start, own)
            self._model_dirs[wanted] = own
        return self._model_dirs[wanted]

    def _start(self, number: int) -> str | None:
        """The checkpoint from which the N-th model_dir starts; None for initial values."""
        given = self.job["checkpoint"]
        if given and os.path.isdir(given):
            given = tf.train.latest_checkpoint(os.path.join(given, f"start-{number}"))
            return str(given) if given else None
        return str(given) if given and number == 0 else None

    def _watched(self, model_fn: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            spec = model_fn(*args, **kwargs)
            if getattr(spec, "mode", None) == "train":
                self.undrawn += randomness.draw_by_step([spec.loss, spec.train_op])
            given = inspect.signature(model_fn).bind(*args, **kwargs).arguments
            values = list(given.items())
            features = values[0][1] if values else None
            self._inputs.append((features, given.get("labels")))
            self._specs.append(spec)
            return spec

        watched.__name__ = getattr(model_fn, "__name__", "model_fn")
        watched.__signature__ = inspect.signature(model_fn)  # type: ignore[attr-defined]
        return watched

    def _train(self, call: Any) -> Any:
        given, model_dir = call.arguments, call.owner.model_dir
        step = records.global_step_of(model_dir)
        last = self._last_step.setdefault(model_dir, step + self.job["steps"])
        if given.get("steps") is not None:
            last = min(last, step + int(given["steps"]))
        if given.get("max_steps") is not None:
            last = min(last, int(given["max_steps"]))
        if given.get("steps") is None or given.get("max_steps") is None:
            given["steps"], given["max_steps"] = None, last
        given["hooks"] = [*(given.get("hooks") or []), RecordingHook(self, model_dir)]
        return call.make()

    def _evaluate(self, call: Any) -> Any:
        steps = call.arguments.get("steps")
        if steps is not None:
            call.arguments["steps"] = min(int(steps), self.job["steps"])
        result = call.make()
        values = {name: records.scalar(value) for name, value in result.items()}
        self.calls.append({"kind": "evaluate", "results": values})
        return result

    def _predict(self, call: Any) -> Any:
        record = {"kind": "predict", "file": f"predictions-{len(self.calls)}", "examples": 0}
        self.calls.append(record)
        predictions = call.make()

        def all_of_them() -> Iterator[Any]:
            seen: list[Any] = []
            try:
                for each in predictions:
                    seen.append(each)
                    yield each
            finally:
                predictions.close()
                record["examples"] = len(seen)
                records.save_arrays(
                    os.path.join(self.folder, str(record["file"])), records.stacked(seen)
                )

        return all_of_them()

    def _export(self, call: Any) -> Any:
        call.arguments["export_dir_base"] = os.path.join(self.folder, f"export-{self._exports}")
        self._exports += 1
        return call.make()

    # Called by the hook.

    def graph_inputs(self) -> dict[str, Any]:
        """Dense features and labels of the current graph, by name."""
        graph = tf.get_default_graph()
        for features, labels in reversed(self._inputs):
            named = {**_named("features", features), **_named("labels", labels)}
            found = {n: t for n, t in named.items() if getattr(t, "graph", None) is graph}
            if found:
                return found
        return {}

    def activations(self) -> dict[str, Any]:
        """Activations and gradients of the current graph's training, by operation."""
        spec = self._spec()
        if spec is None:
            return {}
        found = activations.of_step(spec.loss, spec.train_op)
        self.operations = [{"op": name, **facts} for name, _, facts in found]
        return {name: tensor for name, tensor, _ in found}

    def loss(self) -> Any:
        spec = self._spec()
        losses = [spec.loss] if spec else tf.get_collection(tf.GraphKeys.LOSSES)
        return losses[-1] if losses else None

    def _spec(self) -> Any:
        """The last spec in the current graph; None without one."""
        graph = tf.get_default_graph()
        specs = [
            s for s in self._specs if getattr(getattr(s, "loss", None), "graph", None) is graph
        ]
        return specs[-1] if specs else None

    def step_ended(self, step: int, loss: float | None, inputs: dict[str, Any]) -> None:
        """Records a training step: its loss, and a checksum for each tensor of its input."""
        self._step_ends.append(time.time())
        sums = {name: zlib.crc32(records.plain(value).tobytes()) for name, value in inputs.items()}
        line = [step, loss if loss is None else repr(loss), sums]
        self._losses.write(json.dumps(line) + "\n")
        self._losses.flush()

    def finish(self, error: BaseException | None) -> None:
        """Writes `record.json`; `error` is the exception with which the script ended."""
        self._losses.close()
        started = self.job["started"]
        first = self._step_ends[0] if self._step_ends else None
        # The median, since some steps are compiled anew, or save a checkpoint.
        typical = float(np.median(np.diff(self._step_ends))) if len(self._step_ends) > 1 else 0.0
        record = {
            "versions": {
                "python": platform.python_version(),
                "tensorflow": tf.__version__,
                "numpy": np.__version__,
            },
            "calls": self.calls,
            "trainable": self.trainable,
            "streams": self.undrawn,
            "operations": self.operations,
            "start_up_seconds": None if first is None else first - started,
            "steps_per_second": 1 / typical if typical else None,
            "seconds": time.time() - started,
            "peak_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "error": records.described(error),
        }
        with open(os.path.join(self.folder, "record.json"), "w") as file:
            json.dump(record, file, indent=1)


def _named(name: str, value: Any) -> dict[str, Any]:
    """The dense tensors of a structure by names such as "features/image"."""
    if isinstance(value, dict):
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        items = [(str(i), item) for i, item in enumerate(value)]
    else:
        return {name: value} if isinstance(value, tf.Tensor) else {}
    return {k: v for key, item in items for k, v in _named(name + "/" + key, item).items()}
