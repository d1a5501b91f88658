"""`testing.run`: a few steps of a model_fn on plain arrays."""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.config.arguments import check_path
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.spec.validation import check_is_mode
from tpu_estimator_compat.testing import devices
from tpu_estimator_compat.testing.recording import Recorder
from tpu_estimator_compat.testing.results import Result
from tpu_estimator_compat.testing.subject import SEED, ModelFn, Subject

PREDICTIONS = "predictions"
"""The key of predictions that are a sole tensor."""


def run(
    model_fn: ModelFn,
    features: Any,
    labels: Any = None,
    *,
    mode: str = ModeKeys.TRAIN,
    params: Any = None,
    replicas: int = 1,
    steps: int = 1,
    seed: int | None = SEED,
    use_tpu: bool = True,
    model_dir: str | os.PathLike[str] | None = None,
    runtime: str = "tensorflow",
) -> Result:
    """Makes steps of a model_fn on CPUs, as a `TPUEstimator` makes them.

    Each step gets all examples; replicas share them, by the estimator's rules for batches. The
    `Result` has, by mode, losses and changed variables, metrics, or predictions.

    Example:
      result = testing.run(model_fn, np.ones([8, 4], "float32"), np.zeros([8], "int32"), replicas=4)
      assert result.loss < 1.0
      assert set(result.moved) == {"dense/kernel", "dense/bias", "global_step"}

    Args:
      model_fn: as for `TPUEstimator`; it need not take `params`.
      features, labels: an array each, or a dict or tuple of arrays, with examples along axis 0; no
        labels where None. Lists become arrays of float32 and int32.
      mode: a `ModeKeys` value: "train", "eval" or "infer".
      params: hyperparameters, without `batch_size`.
      replicas: logical CPUs to run on; their number divides that of the examples.
      steps: their number, at least 1; in TRAIN, calls of train_op.
      seed: of TensorFlow's random operations, as `tf_random_seed`.
      use_tpu: False for the rules of training off TPU, on one device. A model_fn that returns an
        `EstimatorSpec` in evaluation or prediction needs it.
      model_dir: a folder whose newest checkpoint gives the variables, and which gets another after
        training; None for a temporary one.
      runtime: "tensorflow" or "jax".

    Raises:
      ValueError, TypeError: no or unequal numbers of examples; what the estimator refuses.
    """
    devices.check_count(steps, "steps")
    check_is_mode(mode)
    subject = Subject(model_fn, features, labels, params, use_tpu, seed, runtime)
    if model_dir is None:
        return of_subject(subject, mode, replicas, steps)
    check_path(model_dir, "model_dir")
    return of_subject(subject, mode, replicas, steps, os.fspath(model_dir))


def of_subject(
    subject: Subject,
    mode: str,
    replicas: int = 1,
    steps: int = 1,
    model_dir: str | None = None,
    recorder: Recorder | None = None,
) -> Result:
    """The result of `run`, for checked arguments; `recorder` keeps its values if a step fails."""
    recorder = recorder or Recorder(subject)
    recorder.most_steps = steps
    given = None if model_dir is None else contextlib.nullcontext(model_dir)
    made = given or tempfile.TemporaryDirectory(prefix="testing_")
    divided = devices.exactly if subject.runtime == "jax" else devices.of_replicas
    with divided(replicas), made as folder:
        saves = {} if model_dir is None else {"save_checkpoints_steps": steps}
        estimator = subject.estimator(replicas, folder, recorder.model_fn, **saves)
        input_fn = subject.input_fn(steps)
        metrics, predictions = {}, {}
        if mode == ModeKeys.TRAIN:
            estimator.train(input_fn, hooks=[recorder], steps=steps)
        elif mode == ModeKeys.EVAL:
            metrics = estimator.evaluate(input_fn, steps=steps, hooks=[recorder])
        else:
            found = estimator.predict(input_fn, hooks=[recorder])
            predictions = _stacked(list(found))
        ran, left_out = recorder.update_ops()
        return Result(
            mode=mode,
            replicas=replicas,
            losses=np.array([metrics["loss"]] if metrics else recorder.losses, float),
            metrics=metrics,
            predictions=predictions,
            before=recorder.before,
            after=recorder.after,
            trainable=recorder.trainable,
            gradients=recorder.gradients,
            disagreement=recorder.disagreement,
            summaries=_summaries(folder, mode),
            host_calls=recorder.host_calls,
            global_step=recorder.global_step,
            update_ops_ran=ran,
            update_ops_left_out=left_out,
            graph=recorder.graph,
            spec=recorder.spec,
        )


def _stacked(examples: list[Any]) -> dict[str, np.ndarray]:
    if not isinstance(examples[0], dict):
        return {PREDICTIONS: np.stack(examples)}
    return {key: np.stack([example[key] for example in examples]) for key in examples[0]}


def _summaries(folder: str, mode: str) -> dict[str, list[tuple[int, Any]]]:
    """The values in the event files of a model_dir, in the order in which they were written."""
    within = [folder, "eval"] if mode == ModeKeys.EVAL else [folder]
    found: dict[str, list[tuple[int, Any]]] = {}
    pattern = os.path.join(glob.escape(os.path.join(*within)), "events.out.tfevents.*")
    for path in sorted(glob.glob(pattern)):
        for event in tf.compat.v1.train.summary_iterator(path):
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, _plain(value)))
    return found


def _plain(value: Any) -> Any:
    """The float of a scalar summary of either version; other values unchanged."""
    if value.WhichOneof("value") == "simple_value":
        return value.simple_value
    is_scalar = value.metadata.plugin_data.plugin_name == "scalars"
    return float(tf.make_ndarray(value.tensor)) if is_scalar else value
