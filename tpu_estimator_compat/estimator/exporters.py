"""Exporters of `train_and_evaluate`: for every evaluation, for the best, or for the last."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config.arguments import check_callable, check_type
from tpu_estimator_compat.engine.hooks.early_stopping import events
from tpu_estimator_compat.engine.runtime import user_files
from tpu_estimator_compat.tf_internals import function_utils

InputReceiverFn = Callable[[], Any]
Results = dict[str, Any]


class Exporter:
    """Base class of exporters: decides after each evaluation whether and how to export.

    Example:
      >>> class NameExporter(Exporter):
      ...     name = "names"
      ...
      ...     def export(self, estimator, export_path, *unused_arguments):
      ...         return estimator.get_variable_names()
      >>> EvalSpec(input_fn, exporters=NameExporter()).exporters[0].name
      'names'
    """

    @property
    def name(self) -> Any:
        """Directory of the exports, below `export` in the model_dir; a non-empty string."""
        return None

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Results,
        is_the_final_export: bool,
    ) -> Any:
        """Exports an estimator, or decides not to.

        Args:
          estimator: the estimator to export.
          export_path: directory of this exporter's exports.
          checkpoint_path: the checkpoint that was evaluated.
          eval_result: the result of `evaluate` for that checkpoint.
          is_the_final_export: whether training has reached `TrainSpec.max_steps`; always False if
            `max_steps` is None.

        Returns:
          The path of the export, or None if there is none.
        """
        raise NotImplementedError(f"{type(self).__name__} must define export().")


class _SavedModelExporter(Exporter):
    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: InputReceiverFn | None,
        assets_extra: dict[str, str] | None = None,
        as_text: bool = False,
    ):
        if serving_input_receiver_fn is not None:  # export_saved_model itself refuses None
            advice = "Give a function that takes nothing and returns a ServingInputReceiver."
            check_callable(serving_input_receiver_fn, "serving_input_receiver_fn", advice)
        self._name = name
        self._serving_input_receiver_fn = serving_input_receiver_fn
        self._assets_extra = assets_extra
        self._as_text = as_text
        self._exports_to_keep: int | None = None
        self._has_exported = False

    @property
    def name(self) -> str:
        return self._name

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Results,
        is_the_final_export: bool,
    ) -> Any:
        if not self._is_due(estimator, eval_result, is_the_final_export):
            return None
        path = estimator.export_saved_model(
            export_path,
            self._serving_input_receiver_fn,
            assets_extra=self._assets_extra,
            as_text=self._as_text,
            checkpoint_path=checkpoint_path,
        )
        delete_old(export_path, self._exports_to_keep)
        self._has_exported = True
        return path

    def _is_due(self, estimator: Any, eval_result: Results, is_final: bool) -> bool:
        return True


class FinalExporter(_SavedModelExporter):
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

    def _is_due(self, estimator: Any, eval_result: Results, is_final: bool) -> bool:
        if is_final:
            logging.info("Performing the final export in the end of training.")
        return is_final


class LatestExporter(_SavedModelExporter):
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

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: InputReceiverFn | None,
        assets_extra: dict[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ):
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        self._exports_to_keep = _checked_number(exports_to_keep, "positive number")


def _loss_smaller(best_eval_result: Results, current_eval_result: Results) -> bool:
    if not best_eval_result or "loss" not in best_eval_result:
        raise ValueError("best_eval_result cannot be empty or no loss is found in it.")
    if not current_eval_result or "loss" not in current_eval_result:
        raise ValueError("current_eval_result cannot be empty or no loss is found in it.")
    return best_eval_result["loss"] > current_eval_result["loss"]


class BestExporter(_SavedModelExporter):
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

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: InputReceiverFn | None = None,
        event_file_pattern: str | None = "eval/*.tfevents.*",
        compare_fn: Callable[..., bool] = _loss_smaller,
        assets_extra: dict[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ):
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        self._compare_fn = _checked_compare_fn(compare_fn)
        self._event_file_pattern = event_file_pattern
        self._exports_to_keep = _checked_number(exports_to_keep, "a positive number")
        self._model_dir: str | None = None
        self._best: Results | None = None

    def _is_due(self, estimator: Any, eval_result: Results, is_final: bool) -> bool:
        if self._event_file_pattern and self._model_dir != estimator.model_dir:
            logging.info("Loading best metric from event files.")
            self._model_dir = estimator.model_dir
            folder = user_files.literal(self._model_dir)
            self._best = self._best_in(os.path.join(folder, self._event_file_pattern))
        if self._has_exported and not self._is_better(eval_result):
            return False
        logging.info("Performing best model export.")
        self._best = eval_result
        return True

    def _is_better(self, result: Results) -> bool:
        if self._best is None:
            return True
        return self._compare_fn(best_eval_result=self._best, current_eval_result=result)

    def _best_in(self, pattern: str) -> Results | None:
        best = None
        for event in events(pattern):
            values = event.summary.value
            result = {v.tag: v.simple_value for v in values if v.HasField("simple_value")}
            if result and (best is None or self._compare_fn(best, result)):
                best = result
        return best


def _checked_compare_fn(compare_fn: Callable[..., bool]) -> Callable[..., bool]:
    if compare_fn is None:
        raise ValueError("`compare_fn` must not be None.")
    check_callable(compare_fn, "compare_fn", "Give a function of the best and the current result.")
    expected = ("best_eval_result", "current_eval_result")
    arguments = set(function_utils.fn_args(compare_fn))
    for name in expected:
        if name not in arguments:
            raise ValueError(f"compare_fn ({compare_fn}) must include {name} argument.")
    if others := sorted(arguments.difference(expected)):
        raise ValueError(f"compare_fn ({compare_fn}) has following not expected args: {others}")
    return compare_fn


def _checked_number(exports_to_keep: int | None, wanted: str) -> int | None:
    if exports_to_keep is None:
        return None
    check_type(exports_to_keep, "exports_to_keep", (int, np.integer), "int")
    if exports_to_keep <= 0:
        raise ValueError(f"`exports_to_keep`, if provided, must be {wanted}. Got {exports_to_keep}")
    return exports_to_keep


def delete_old(export_path: str, keep: int | None) -> None:
    """Deletes all but the newest `keep` exports: directories named by ten digits, a timestamp."""
    if keep is None:
        return
    names = [os.fspath(n).rstrip("/") for n in tf.io.gfile.listdir(export_path)]
    exports = [n for n in names if re.fullmatch(r"\d{10}", n)]
    for name in sorted(set(exports).difference(heapq.nlargest(keep, exports))):
        path = os.path.join(export_path, name)
        if user_files.is_link(path) or not tf.io.gfile.isdir(path):
            logging.warning("Not deleting %s: it is no folder, and so no export.", path)
            continue
        try:
            user_files.remove_tree(path)
        except (tf.errors.NotFoundError, FileNotFoundError) as error:
            logging.warning("Can not delete %s recursively: %s", path, error)
