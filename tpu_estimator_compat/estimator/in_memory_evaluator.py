"""`InMemoryEvaluatorHook`: evaluates the live weights during training, without a checkpoint."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.config.arguments import check_input_fn, check_type
from tpu_estimator_compat.engine.checkpoint.state import CheckpointSource
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.modes import preparation
from tpu_estimator_compat.engine.modes.evaluation import Evaluation
from tpu_estimator_compat.engine.modes.rules import InputFn
from tpu_estimator_compat.environment import TENSORFLOW
from tpu_estimator_compat.estimator.estimator import Estimator
from tpu_estimator_compat.keras_model import calls
from tpu_estimator_compat.spec import ModeKeys

Hook = Any  # a tf.compat.v1.train.SessionRunHook
GraphKeys = tf.compat.v1.GraphKeys


class InMemoryEvaluatorHook(tf.compat.v1.train.SessionRunHook):
    """Evaluates before training, every `every_n_iter` steps, and at the end.

    The weights go from training to evaluation in memory. Variables that only the evaluation has
    keep their initial values.

    Args:
      estimator: the estimator in training, which also evaluates.
      input_fn: the data to evaluate on.
      steps: the number of steps of an evaluation; None for all of the data.
      hooks: hooks of the evaluation.
      name: name of the evaluation; part of the directory of its events.
      every_n_iter: steps between two evaluations; with `use_tpu=True`, the current loop is finished
        first.

    Raises:
      TypeError: an argument of another type.
      ValueError: `every_n_iter` or `steps` is not positive, the estimator trains on several
        machines, or (during training) the model has its own saver, init_fn or saveables.

    Example:
      >>> estimator = Estimator(model_fn, "model")
      >>> hook = InMemoryEvaluatorHook(estimator, input_fn, steps=1, every_n_iter=10)
      >>> estimator = estimator.train(input_fn, hooks=[hook], steps=1)
    """

    @functools.partial(calls.observed, name="InMemoryEvaluatorHook")
    def __init__(
        self,
        estimator: Estimator,
        input_fn: InputFn,
        steps: int | None = None,
        hooks: Sequence[Hook] | None = None,
        name: str | None = None,
        every_n_iter: int | None = 100,
    ):
        if not hasattr(estimator, "config"):
            raise TypeError(
                f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}"
            )
        check_input_fn(input_fn)
        if every_n_iter is None:
            raise ValueError("invalid every_n_iter=None. Give a number of steps.")
        check_type(every_n_iter, "every_n_iter", (int, np.integer), "int")
        if every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}. It must be positive.")
        config = estimator.config
        if config.num_ps_replicas > 0 or config.num_worker_replicas > 1:
            raise ValueError(
                "InMemoryEvaluator supports only single machine (aka Local) setting. TF_CONFIG has "
                f"{config.num_ps_replicas} ps and {config.num_worker_replicas} worker replicas."
            )
        self._estimator = estimator
        self._input_fn = input_fn
        self._every = every_n_iter
        estimator._mode_rules.check_eval_steps(steps)
        self._request = estimator._eval_request(steps, hooks, CheckpointSource(None, None), name)

    def begin(self) -> None:
        self._steps = 0
        self._last_evaluated = 0
        with eager.eager_mode():
            rules: Any = self._estimator._mode_rules
            # Steps evaluate values that are in memory; a session of TensorFlow keeps its own.
            rules = dataclasses.replace(rules, config=rules.config.replace(runtime=TENSORFLOW))
            input_mode = preparation.resolve(rules, ModeKeys.EVAL)
            found = self._estimator._prepared(rules, self._input_fn, input_mode)
            self._evaluation = Evaluation(*found, self._request)
        if self._evaluation.scaffold.saver is not None:
            raise ValueError("InMemoryEvaluator does not support custom saver")
        if self._evaluation.scaffold.init_fn is not None:
            raise ValueError("InMemoryEvaluator does not support custom init_fn")
        self._names = {v.op.name for v in found[1].graph.get_collection(GraphKeys.GLOBAL_VARIABLES)}

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        if session.graph.get_collection(GraphKeys.SAVEABLE_OBJECTS):
            raise ValueError(
                "InMemoryEvaluator does not support saveables other than global variables."
            )
        variables = session.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        self._shared = {v.op.name: v for v in variables if v.op.name in self._names}
        self._evaluate(session)

    def steps_until_control(self, global_step: int) -> int:
        del global_step
        return self._last_evaluated + self._every - self._steps

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        self._steps += getattr(run_context.session, "steps_last_run", 1)
        if self._steps >= self._last_evaluated + self._every:
            self._evaluate(run_context.session)

    def end(self, session: Any) -> None:
        self._evaluate(session)

    def _evaluate(self, session: Any) -> None:
        self._evaluation(session.run(self._shared))
        self._last_evaluated = self._steps
