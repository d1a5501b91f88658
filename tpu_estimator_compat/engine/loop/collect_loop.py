"""Predicts several input elements and returns all their outputs, in one call each or in a loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.functions import eager, functions, tuning
from tpu_estimator_compat.engine.functions.tuner import Call, Tuner
from tpu_estimator_compat.engine.step.program import StepProgram


class CollectLoop:
    """Predicts several batches: the first in one call each, later ones in a `tf.while_loop`.

    A loop saves Python's cost per call, but takes several times as long to trace, which pays only
    for many batches. `outputs` has (dtype, rank) of each output of `step`, whose first dimension is
    the batch's.
    """

    def __init__(self, step: StepProgram, outputs: Sequence[tuple[tf.DType, int]]):
        self._step = step
        self._outputs = list(outputs)
        self._clock = tuning.NUMBERS.clock
        # For large batches, Python's cost per call is too small for a loop to pay.
        self._tuner = Tuner(step.may_run_on_one_thread, patience=math.inf)
        self._run = self._per_executor(self._build, "collect")
        self._run_one = self._per_executor(lambda it: self._step(next(it)), "collect one")

    def _per_executor(self, build: Callable[..., Any], kind: str) -> functions.PerExecutor:
        def make() -> functions.IteratorFunction:
            step = self._step.contents()
            within = None if step is None else step.within((kind, tuple(self._outputs)))
            return functions.IteratorFunction(build, within)

        return functions.PerExecutor(make)

    def _build(self, iterator: Any, most: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        def arrays(dtypes: Sequence[tf.DType]) -> list[tf.TensorArray]:
            return [tf.TensorArray(d, size=0, dynamic_size=True, infer_shape=False) for d in dtypes]

        def body(i, more, rows, kept):
            del more
            element = iterator.get_next_as_optional()

            def with_element():
                values = self._step(element.get_value())
                sizes = tf.stack([tf.shape(v)[0] for v in values])
                return (
                    i + 1,
                    True,
                    rows.write(i, sizes),
                    [a.write(i, v) for a, v in zip(kept, values, strict=True)],
                )

            return _if(element.has_value(), with_element, (i, False, rows, kept))

        [rows] = arrays([tf.int32])
        kept = arrays([dtype for dtype, _ in self._outputs])
        count, _, rows, kept = tf.while_loop(
            lambda i, more, *_: tf.logical_and(i < most, more), body, (0, True, rows, kept)
        )
        # Without an element, dimensions other than the first are unknown.
        nothing = [tf.zeros([0, len(self._outputs)], tf.int32)]
        nothing += [tf.zeros([0] * rank, dtype) for dtype, rank in self._outputs]
        shapes = [tf.TensorShape([None] * value.shape.rank) for value in nothing]

        def joined():
            made = [rows.stack(), *(a.concat() for a in kept)]
            for tensor, shape in zip(made, shapes, strict=True):
                tensor.set_shape(shape)
            return made

        sizes, *values = _if(count > 0, joined, nothing, shapes)
        return sizes, values

    def __call__(self, iterator: Any, most: int) -> list[list[np.ndarray]]:
        """Lists of outputs of steps on the next `most` elements; fewer where the data ended."""
        steps: list[list[np.ndarray]] = []
        with eager.eager_mode():
            while len(steps) < most:
                call = self._tuner.next(most - len(steps))
                started = self._clock()
                found = (self._in_a_loop if call.looped else self._alone)(iterator, call)
                self._tuner.record(call, len(found), self._clock() - started)
                steps += found
                if len(found) < call.steps:
                    break
        return steps

    def _alone(self, iterator: Any, call: Call) -> list[list[np.ndarray]]:
        try:  # a remote host may report the end only when its values are read
            return [[value.numpy() for value in self._run_one(call.executor, iterator)]]
        except (StopIteration, tf.errors.OutOfRangeError):
            eager.forget_end_of_data()
            return []

    def _in_a_loop(self, iterator: Any, call: Call) -> list[list[np.ndarray]]:
        sizes, *values = self._run(call.executor, iterator, tf.constant(call.steps))
        ends = np.cumsum(sizes.numpy(), axis=0)[:-1]
        if not len(sizes):
            return []
        parts = [np.split(v.numpy(), ends[:, i]) for i, v in enumerate(values)]
        return [list(step) for step in zip(*parts, strict=True)]


def _if(
    condition: tf.Tensor, call: Callable[[], Any], otherwise: Sequence[Any], shapes: Any = None
) -> Any:
    """A `tf.cond`, or on the single-threaded executor a loop of at most one iteration.

    The single-threaded executor runs a loop in its own thread, in 0.55 of the time of a branch. For
    a branch, one thread of TensorFlow's pool waits for another, which does not exist with one
    processor. On the default executor a branch takes 0.8 of the time of a loop.
    """
    if functions.executor() != tuning.SINGLE_THREADED:
        return tf.cond(condition, call, lambda: otherwise)
    invariants = None if shapes is None else (tf.TensorShape([]), shapes)
    _, made = tf.while_loop(
        lambda undecided, _: undecided,
        lambda _, __: (False, call()),
        (condition, otherwise),
        shape_invariants=invariants,
    )
    return made
