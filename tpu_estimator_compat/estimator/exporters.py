"""The original's exporters; they name wrong arguments, and delete nothing through links."""

from __future__ import annotations

import functools
import heapq
import os
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config.arguments import check_callable, check_type
from tpu_estimator_compat.engine.files import removal, user_files
from tpu_estimator_compat.estimator import original
from tpu_estimator_compat.estimator.early_stopping import events

Results = dict[str, Any]
_original: Any = original.module("exporter")
Exporter = _original.Exporter


@functools.wraps(Exporter.export)
def _undefined(self: Any, *unused_arguments: Any, **unused: Any) -> None:
    raise NotImplementedError(f"{type(self).__name__} must define export().")


Exporter.export = _undefined  # the original's does nothing, in silence
_ADVICE = {
    "serving_input_receiver_fn": (
        "Give a function that takes nothing and returns a ServingInputReceiver."
    ),
    "compare_fn": "Give a function of the best and the current result.",
}


def _check(given: dict[str, Any]) -> None:
    for name, advice in _ADVICE.items():
        if given.get(name) is not None:
            check_callable(given[name], name, advice)
    if given.get("exports_to_keep") is not None:
        check_type(given["exports_to_keep"], "exports_to_keep", (int, np.integer), "int")


class FinalExporter(_original.FinalExporter):
    """Exports once, when training has reached `TrainSpec.max_steps`.

    Args:
      name: directory of the exports, below `export` in the model_dir.
      serving_input_receiver_fn: takes no arguments, returns a `ServingInputReceiver`.
      assets_extra: path below the SavedModel's `assets.extra` to the file to copy there.
      as_text: whether to write the graph as text.

    Raises:
      TypeError: `serving_input_receiver_fn` is not callable.

    Example:
      >>> FinalExporter("final", receiver_fn).name
      'final'
    """

    __init__ = original.checked(_original.FinalExporter.__init__, _check)


class LatestExporter(_original.LatestExporter):
    """Exports after every evaluation, and deletes old exports.

    The other arguments are those of `FinalExporter`.

    Args:
      exports_to_keep: the number of newest exports to keep; None keeps all.

    Raises:
      ValueError: `exports_to_keep` is not positive.
      TypeError: `exports_to_keep` is not an int, or `serving_input_receiver_fn` is not callable.

    Example:
      >>> LatestExporter("latest", receiver_fn, exports_to_keep=3).name
      'latest'
    """

    __init__ = original.checked(_original.LatestExporter.__init__, _check)

    def _garbage_collect_exports(self, export_dir_base: str) -> None:
        delete_old(export_dir_base, self._exports_to_keep)


class BestExporter(_original.BestExporter):
    """Exports when an evaluation is better than all before, and deletes old exports.

    An exporter always exports its first evaluation. The other arguments are those of
    `LatestExporter`.

    Args:
      event_file_pattern: event files below the model_dir with the results of earlier evaluations,
        from which a restarted job reads the best. None starts without them.
      compare_fn: takes `best_eval_result` and `current_eval_result`, by these names; returns
        whether the second is better. By default, whether its loss is smaller.

    Raises:
      ValueError: no `compare_fn`, or one with other arguments; `exports_to_keep` is not positive.
      TypeError: a function that is not callable; `exports_to_keep` is not an int.

    Example:
      >>> BestExporter("best", receiver_fn, exports_to_keep=1).name
      'best'
    """

    __init__ = original.checked(_original.BestExporter.__init__, _check)

    def _garbage_collect_exports(self, export_dir_base: str) -> None:
        delete_old(export_dir_base, self._exports_to_keep)

    def _get_best_eval_result(self, event_files: str) -> Results | None:
        del event_files  # a model_dir may have any name, and a file may be damaged
        folder, best = user_files.literal(self._model_dir), None
        for event in events(os.path.join(folder, self._event_file_pattern)):
            values = event.summary.value
            result = {v.tag: v.simple_value for v in values if v.HasField("simple_value")}
            if result and (best is None or self._compare_fn(best, result)):
                best = result
        return best


def delete_old(export_path: str, keep: int | None) -> None:
    """Deletes all but the newest `keep` exports: directories named by ten digits, a timestamp."""
    if keep is None:
        return
    names = [os.fspath(n).rstrip("/") for n in tf.io.gfile.listdir(export_path)]
    exports = [n for n in names if removal.named(n, "export")]
    for name in sorted(set(exports).difference(heapq.nlargest(keep, exports))):
        path = os.path.join(export_path, name)
        if user_files.is_link(path) or not tf.io.gfile.isdir(path):
            logging.warning("Not deleting %s: it is no folder, and so no export.", path)
            continue
        removal.remove(path, "export")
