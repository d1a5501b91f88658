"""Predictions of several input elements: all outputs of each, in a call each or in one loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.loop.device_loop import Step
from tpu_estimator_compat.engine.runtime import eager, functions
from tpu_estimator_compat.engine.runtime.traces import Contents
from tpu_estimator_compat.engine.runtime.tuners import CollectTuner
from tpu_estimator_compat.engine.runtime.tuning import SINGLE_THREADED


class CollectLoop:
    """Runs a step on several input elements and keeps all its outputs.

    For prediction. The first elements have a call each, and so has one that is asked for alone. In
    a loop, many share what Python costs per call. A loop takes some times as long to trace, which
    few batches cannot repay.

    Args:
      step: builds one step into the function under construction.
      outputs: (dtype, rank) of each output; the first dimension of each is the batch's.
      tuner: says on which executor, and whether in a loop.
      contents: see `DeviceLoop`.
    """

    def __init__(
        self,
        step: Step,
        outputs: Sequence[tuple[tf.DType, int]],
        tuner: CollectTuner,
        contents: Callable[[], Contents | None] = lambda: None,
    ):
        self._step = step
        self._outputs = list(outputs)
        self._tuner = tuner
        self._contents_of_step = contents
        self._run = functions.PerExecutor(
            lambda: functions.IteratorFunction(self._build, self._contents("collect"))
        )
        self._run_one = functions.PerExecutor(
            lambda: functions.IteratorFunction(
                lambda iterator: self._step(next(iterator)), self._contents("collect one")
            )
        )

    def _contents(self, kind: str) -> Contents | None:
        step = self._contents_of_step()
        return None if step is None else step.within((kind, tuple(self._outputs)))

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
        # Of no element at all nobody knows the other dimensions.
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
        """Runs up to `most` steps, each of an element of the iterator's own.

        Args:
          iterator: gives one input element per step.
          most: the largest number of steps to run.

        Returns:
          One list of outputs per step; fewer than `most` where the data ended.
        """
        steps: list[list[np.ndarray]] = []
        with eager.eager_mode():
            while len(steps) < most and not (self._tuner.loops and most > 1):
                started = self._tuner.clock()
                try:  # another host may tell of the end when its values are asked for
                    found = self._run_one(self._tuner.executor, iterator)
                    values = [value.numpy() for value in found]
                except (StopIteration, tf.errors.OutOfRangeError):
                    return steps
                self._tuner.record(1, self._tuner.clock() - started)
                steps.append(values)
            return steps + self._in_a_loop(iterator, most - len(steps))

    def _in_a_loop(self, iterator: Any, most: int) -> list[list[np.ndarray]]:
        if not most:
            return []
        started = self._tuner.clock()
        sizes, *values = self._run(self._tuner.executor, iterator, tf.constant(most))
        self._tuner.record(len(sizes), self._tuner.clock() - started)
        ends = np.cumsum(sizes.numpy(), axis=0)[:-1]
        if not len(sizes):
            return []
        parts = [np.split(v.numpy(), ends[:, i]) for i, v in enumerate(values)]
        return [list(step) for step in zip(*parts, strict=True)]


def _if(
    condition: tf.Tensor, call: Callable[[], Any], otherwise: Sequence[Any], shapes: Any = None
) -> Any:
    """The results of `call` if the condition holds, by a branch or a loop of at most one turn.

    The single-threaded executor makes a loop in the thread that it has, which takes 0.55 of the
    time. For a branch it waits in one thread of TensorFlow's pool for another one, and with one
    processor there is no other. With the default executor a branch takes 0.8 of the time.
    """
    if functions.executor() != SINGLE_THREADED:
        return tf.cond(condition, call, lambda: otherwise)
    invariants = None if shapes is None else (tf.TensorShape([]), shapes)
    _, made = tf.while_loop(
        lambda undecided, _: undecided,
        lambda _, __: (False, call()),
        (condition, otherwise),
        shape_invariants=invariants,
    )
    return made
