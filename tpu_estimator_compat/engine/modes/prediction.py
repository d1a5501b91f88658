"""Prediction: a generator of the model's outputs, without the last batch's padding."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.checkpoint.state import CheckpointSource
from tpu_estimator_compat.engine.functions import tuning
from tpu_estimator_compat.engine.hooks import split_hooks
from tpu_estimator_compat.engine.inputs.deployed_input import DeployedInput
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.engine.modes.model_modes import Model
from tpu_estimator_compat.engine.modes.plans import prediction_plan
from tpu_estimator_compat.engine.modes.ready_mode import make_ready, warn_if_untrained
from tpu_estimator_compat.engine.modes.training import writer_hooks
from tpu_estimator_compat.engine.session import fetches as fetches_lib
from tpu_estimator_compat.engine.session.session_creator import SessionCreator, monitored_session
from tpu_estimator_compat.engine.session.step_session import StepSession
from tpu_estimator_compat.spec import WarmStartSettings
from tpu_estimator_compat.tf_internals import summary_ops_v2

Hook = Any  # a tf.compat.v1.train.SessionRunHook
Predictions = Any  # a tensor, or a dict of tensors


@dataclasses.dataclass(frozen=True)
class PredictRequest:
    """The arguments of one `predict` call; `predict_keys=None` means all predictions.

    Without a path in `source`, variables are initialized, and warm-started from `warm_start`.
    """

    hooks: Sequence[Hook]
    predict_keys: Sequence[str] | None
    source: CheckpointSource
    warm_start: WarmStartSettings | None
    yield_single_examples: bool


def predict(
    model: Model, captured: CapturedMode, deployed_input: DeployedInput, request: PredictRequest
) -> Iterator[Any]:
    """Yields predictions until the data ends: examples or batches, as arrays or dicts of arrays.

    No context stays open while the caller has control, so that the generator may be abandoned,
    interleaved with others, or closed from elsewhere.
    """
    source = request.source
    with captured.in_graph():
        captured.start(None if source.path else request.warm_start)
        wanted = _wanted(captured.spec.predictions, request.predict_keys)
        mode = make_ready(captured, *prediction_plan(captured, wanted))
        model.modes.drive(mode)
        if not source.path:
            warn_if_untrained(captured, mode.scaffold)
        creator = SessionCreator(lambda: mode.step_session(deployed_input), mode.scaffold, source)
        writers = writer_hooks(captured) if summary_ops_v2.summary_writer_initializer_op() else []
    fetches = mode.outputs
    request_hooks, keras_callbacks = split_hooks(
        request.hooks, model, captured.mode, {"outputs": fetches["predictions"]}
    )
    hooks = [*request_hooks, *captured.spec.hooks, *keras_callbacks]
    if hooks or fetches["host_call"] or writers:
        hooks = [*writers, *hooks]
        values = one_by_one(captured, creator, hooks, fetches)
    else:
        values = _many_at_once(captured, creator, fetches)
    with contextlib.closing(values):
        yield from examples(values, request)


def examples(values: Iterator[dict[str, Any]], request: PredictRequest) -> Iterator[Any]:
    """The predictions among `values`, as examples or batches."""
    for batch in map(_without_padding, _of_one_shape(values)):
        if request.yield_single_examples:
            yield from _examples(batch)
        else:
            yield batch


def one_by_one(
    captured: CapturedMode,
    creator: tf.compat.v1.train.SessionCreator,
    hooks: Sequence[Hook],
    fetches: dict[str, Any],
) -> Generator[dict[str, Any], None, None]:
    """Values of `fetches` for every input element; hooks run for each."""
    with captured.in_graph():
        monitored = monitored_session(creator, hooks)
    try:
        while True:
            with captured.in_graph():
                if monitored.should_stop():
                    break
                try:
                    values = _run(monitored, fetches)
                except (tf.errors.OutOfRangeError, StopIteration):
                    break
            yield values
    except BaseException as error:  # the caller closed the generator, or a hook or step failed
        with captured.in_graph():
            monitored.__exit__(type(error), error, error.__traceback__)  # calls no hook's `end`
        _end(creator, failed=not isinstance(error, GeneratorExit))
        raise
    with captured.in_graph():
        monitored.close()
    _end(creator)


def _end(creator: tf.compat.v1.train.SessionCreator, *, failed: bool = False) -> None:
    """Ends the prediction for other machines that share it."""
    if not isinstance(creator, SessionCreator | _Ready):
        return
    assert creator.session is not None
    runner = creator.session.runner
    if failed:
        runner.fail()
    else:
        runner.leave()


def _run(monitored: tf.compat.v1.train.MonitoredSession, fetches: dict[str, Any]) -> dict[str, Any]:
    """Values of `fetches` for the next element; hooks find `original_args` as in the original."""
    if fetches["host_call"] or len(fetches) > 2:
        return monitored.run(fetches)
    return {"predictions": monitored.run(fetches["predictions"])}


def _many_at_once(
    captured: CapturedMode, creator: SessionCreator[StepSession], fetches: dict[str, Any]
) -> Generator[dict[str, Any], None, None]:
    """Values of `fetches` for every input element, several elements a call where that is fast."""
    wanted = {k: v for k, v in fetches.items() if k != "host_call"}
    flat = tf.nest.flatten(wanted)
    with captured.in_graph():
        session = creator.create_session()
    if not session.can_collect(flat):
        with contextlib.closing(one_by_one(captured, _Ready(session), [], fetches)) as values:
            yield from values
        return
    packed = fetches_lib.copier(wanted, flat)  # `tf.nest` takes as long as a small batch
    with contextlib.closing(session):  # flushes its summary writers
        numbers = tuning.NUMBERS
        most = numbers.most_batches if session.input.deployed_input.reads_ahead else 1
        asked = 1  # at first: the caller may want no more
        while True:
            started = numbers.clock()
            try:
                steps = session.collect(flat, asked)
            except tf.errors.OutOfRangeError:  # a signal ended the wait for Python's next element
                return
            seconds = numbers.clock() - started  # before `yield`: the caller's time must not count
            yield from map(packed, steps)
            if len(steps) < asked:
                return
            if seconds < numbers.short_piece:
                asked = min(2 * asked, most)


class _Ready(tf.compat.v1.train.SessionCreator):
    def __init__(self, session: StepSession):
        self.session = session

    def create_session(self) -> StepSession:
        return self.session


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


def _of_one_shape(values: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields the same values; refuses changes of shapes: a TPU program has one shape."""
    first: dict[str, Any] | None = None
    for fetched in values:
        if "is_padding" in fetched:
            shapes = {name: np.shape(value) for name, value in fetched["predictions"].items()}
            first = first or shapes
            for name, shape in shapes.items():
                if shape != first[name]:
                    raise ValueError(
                        f"The tensor with key ({name}) in TPUEstimatorSpec.predictions has dynamic "
                        f"shape (should be static). It had shape {first[name]} in the first batch, "
                        f"and then {shape}. Pad it in model_fn to one shape."
                    )
        yield fetched


def _without_padding(values: dict[str, Any]) -> Any:
    predictions = values["predictions"]
    if "is_padding" not in values:
        return predictions
    real = values["is_padding"] == 0
    if real.all():
        return predictions
    return tf.nest.map_structure(lambda v: v[real], predictions)


def _examples(batch: Any) -> Iterator[Any]:
    if not isinstance(batch, dict):
        yield from batch
        return
    if not batch:
        raise TypeError(
            "model_fn returned predictions={}: there are no examples to yield. Return predictions "
            "with the examples along axis 0."
        )
    if scalars := [name for name, value in batch.items() if not np.shape(value)]:
        raise ValueError(
            f"Predictions must have the examples along axis 0, but these are scalars: {scalars}. "
            "Leave them out with predict_keys, or pass yield_single_examples=False."
        )
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
