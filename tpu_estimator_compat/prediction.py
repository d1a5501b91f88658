"""Prediction: a generator of the model's outputs, with the padding of the last batch removed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.checkpoint import StepSessionCreator
from tpu_estimator_compat.inputs import Feed
from tpu_estimator_compat.inputs.padding import Padded
from tpu_estimator_compat.mode_run import ModeRun
from tpu_estimator_compat.spec import WarmStartSettings
from tpu_estimator_compat.step_session import StepSession
from tpu_estimator_compat.training import host_call_targets, scaffold_of

Hook = Any  # a tf.compat.v1.train.SessionRunHook
Predictions = Any  # a tensor, or a dict of tensors


@dataclasses.dataclass(frozen=True)
class PredictRequest:
    """What one call of `predict` asks for.

    Attributes:
      hooks: the caller's hooks.
      predict_keys: names of the predictions to give; None for all.
      checkpoint_path: the checkpoint to use; None for first values.
      warm_start: where first values come from, without a checkpoint.
      yield_single_examples: give examples one by one instead of batches.
    """

    hooks: Sequence[Hook]
    predict_keys: Sequence[str] | None
    checkpoint_path: str | None
    warm_start: WarmStartSettings | None
    yield_single_examples: bool


def predict(run: ModeRun, feed: Feed, request: PredictRequest) -> Iterator[Any]:
    """Yields predictions until the data ends.

    No context of ours stays open while the caller has control, so the generator may be abandoned,
    interleaved with others, or closed from elsewhere.

    Args:
      run: the prepared PREDICT mode.
      feed: its input.
      request: what to give.

    Yields:
      One example (or batch) at a time: an array, or a dict of arrays.

    Raises:
      ValueError: no prediction has one of the wanted keys, or lengths differ within a batch.
    """
    with run.in_graph():
        if not request.checkpoint_path and request.warm_start:
            logging.info("Warm-starting with WarmStartSettings: %s", request.warm_start)
            tf.compat.v1.train.warm_start(*request.warm_start)
        predictions = _wanted(run.spec.predictions, request.predict_keys)
        fetches = _fetches(run, predictions)
        monitored = _session(run, feed, request, fetches)
    try:
        while (batch := _next_batch(run, monitored, fetches)) is not None:
            if request.yield_single_examples:
                yield from _examples(batch)
            else:
                yield batch
    finally:
        with run.in_graph():
            monitored.close()


def _wanted(predictions: Predictions, keys: Sequence[str] | None) -> Predictions:
    if not keys:
        return predictions
    if not isinstance(predictions, dict):
        raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")
    found = {k: v for k, v in predictions.items() if k in keys}
    if not found:
        raise ValueError(
            f"Expected to run at least one output from {predictions.keys()}, provided {keys}."
        )
    return found


def _fetches(run: ModeRun, predictions: Predictions) -> dict[str, Any]:
    """What to run for a batch: predictions over all replicas, and which rows are padding."""
    host_call = host_call_targets(run)
    if not run.topology.tpu_semantics:
        return {"predictions": predictions, "host_call": host_call}
    is_padding = Padded(*_element(run)).is_padding
    return {
        "predictions": tf.nest.map_structure(run.over_replicas, predictions),
        "is_padding": run.over_replicas(is_padding),
        "host_call": host_call,
    }


def _element(run: ModeRun) -> Any:
    return tf.nest.pack_sequence_as(
        run.captured.element_spec, run.captured.feeds, expand_composites=True
    )


def _session(run: ModeRun, feed: Feed, request: PredictRequest, fetches: dict[str, Any]):
    creator = StepSessionCreator(
        lambda: StepSession(
            run.captured, run.store, feed, loss=None, fetches=tf.nest.flatten(fetches)
        ),
        scaffold_of(run),
        checkpoint_filename_with_path=request.checkpoint_path,
    )
    hooks = [*request.hooks, *(run.spec.prediction_hooks or [])]
    return tf.compat.v1.train.MonitoredSession(session_creator=creator, hooks=hooks)


def _next_batch(run: ModeRun, monitored, fetches: dict[str, Any]) -> Any:
    with run.in_graph():
        if monitored.should_stop():
            return None
        try:
            values = monitored.run(fetches)
        except tf.errors.OutOfRangeError:
            return None
    predictions = values["predictions"]
    if "is_padding" not in values:
        return predictions
    real = values["is_padding"] == 0
    if not real.any():
        return None
    if real.all():
        return predictions
    return tf.nest.map_structure(lambda v: v[real], predictions)


def _examples(batch: Any) -> Iterator[Any]:
    if not isinstance(batch, dict):
        yield from batch
        return
    lengths = {name: np.shape(value)[0] for name, value in batch.items()}
    if len(set(lengths.values())) > 1:
        name = next(n for n, size in lengths.items() if size != next(iter(lengths.values())))
        raise ValueError(
            f"Batch length of predictions should be same. {name} has different batch length than "
            f"others. Got {lengths}."
        )
    names = list(batch)
    for row in zip(*batch.values(), strict=True):
        yield dict(zip(names, row, strict=True))
