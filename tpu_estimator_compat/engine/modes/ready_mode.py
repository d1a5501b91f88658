"""A captured mode that can make steps: its plan, its scaffold, and its session.

TensorFlow's MonitoredSession and Keras' loops both run on it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.checkpoint.writing import add_default_saver
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.inputs.deployed_input import DeployedInput
from tpu_estimator_compat.engine.loop.runner import RunLimits, Runner
from tpu_estimator_compat.engine.modes import runtimes
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.engine.modes.metrics import LOSS
from tpu_estimator_compat.engine.session.graph_session import RunnerSession
from tpu_estimator_compat.engine.session.step_session import StepSession
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.step.random_streams import RandomStreams
from tpu_estimator_compat.spec import ModeKeys

GraphKeys = tf.compat.v1.GraphKeys
_SHOWN = 3  # names of untrained variables in a warning


@dataclasses.dataclass
class ReadyMode:
    """One mode of a model, ready to make steps.

    Attributes:
      outputs: in EVAL the metrics' values by name, in PREDICT a structure of fetches.
      session: the current session; a new one replaces a broken one. None before the first.
    """

    captured: CapturedMode
    plan: StepPlan
    scaffold: tf.compat.v1.train.Scaffold
    outputs: Any
    session: RunnerSession | None = None

    def step_session(
        self, deployed_input: DeployedInput, limits: RunLimits | None = None
    ) -> StepSession:
        """A session that takes elements from an input; without `limits`, one step per run."""
        limits = limits or RunLimits()
        if self.plan.host_stage:  # no stacking: the replicas' numbers of ids vary
            deployed_input = dataclasses.replace(deployed_input, replicas_per_element=None)
        make_runner = self._runners(limits, deployed_input.next)
        config = self.captured.config.session_config
        self.session = session = StepSession(make_runner, deployed_input, limits, config)
        return session

    def keras_session(self, interrupted: Callable[[], bool]) -> RunnerSession:
        """A session for Keras' loops, which pass elements to the steps themselves."""
        runners = self._runners(RunLimits(interrupted=interrupted))
        self.session = RunnerSession(runners, self.captured.config.session_config)
        return self.session

    def _runners(
        self, limits: RunLimits, next_element: Callable[[Iterator], Any] | None = None
    ) -> Callable[[], Runner]:
        """A function that makes runners of the steps, which continue the same random streams."""
        captured, streams = self.captured, RandomStreams()

        def make_runner() -> Runner:
            with captured.in_graph():
                captured.settle_devices(self.plan)
                return runtimes.new_runner(
                    self.plan,
                    captured.store,
                    captured.topology,
                    limits,
                    streams=streams,
                    model_dir=captured.config.model_dir,
                    next_element=next_element,
                )

        return make_runner

    @property
    def ready_session(self) -> RunnerSession:
        assert self.session is not None
        return self.session

    def variables(self) -> list[tuple[str, bool]]:
        """(name, whether trainable) of each global variable of the model."""
        captured, trainable = self.captured, set(self.plan.trainable_names())
        names = [v.op.name for v in captured.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)]
        return [(name, name in trainable) for name in names if name in captured.store]

    @property
    def element_spec(self) -> Any:
        return self.captured.element.spec

    def metric_readers(self) -> dict[str, Callable[[], np.ndarray]]:
        if self.captured.mode != ModeKeys.EVAL:
            return {}
        metrics = {name: tensor for name, tensor in self.outputs.items() if name != LOSS}
        return {name: functools.partial(self._value, tensor) for name, tensor in metrics.items()}

    def _value(self, tensor: tf.Tensor) -> np.ndarray:
        return self.ready_session.run(tensor)

    def reset_metrics(self) -> None:
        self.ready_session.run(self.scaffold.local_init_op)

    def packed(self, outputs: Sequence[tf.Tensor]) -> Any:
        """`outputs` of a step of PREDICT in the structure of the spec's predictions."""
        return tf.nest.pack_sequence_as(self.captured.spec.predictions, outputs)


def make_ready(captured: CapturedMode, plan: StepPlan, outputs: Any = None) -> ReadyMode:
    """Completes the graph of a mode with a plan; called in `in_graph()`, after `captured.start`."""
    scaffold = captured.functions.scaffold
    if captured.mode == ModeKeys.TRAIN:
        add_default_saver(captured.graph, captured.config, scaffold)
    if captured.mode == ModeKeys.EVAL:
        scaffold = _with_metrics_initialized(scaffold)
    return ReadyMode(captured, plan, scaffold, outputs)


def _with_metrics_initialized(
    scaffold: tf.compat.v1.train.Scaffold,
) -> tf.compat.v1.train.Scaffold:
    """A scaffold for EVAL, whose local_init_op also initializes metrics, as in the original."""
    if scaffold.local_init_op is None:
        return scaffold
    both = tf.group(scaffold.local_init_op, tf.compat.v1.train.Scaffold.default_local_init_op())
    return tf.compat.v1.train.Scaffold(local_init_op=both, copy_from_scaffold=scaffold)


def warn_if_untrained(captured: CapturedMode, scaffold: tf.compat.v1.train.Scaffold) -> None:
    """Warns where, without a checkpoint, trainable variables have their initializers' values.

    Initializers that read a file, as with `init_from_checkpoint` and warm starts, do not count. An
    `init_fn` may assign any values: with one there is no warning.
    """
    trainable = captured.graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
    drawn = [v.op.name for v in trainable if not _is_read(v)]
    if not drawn or scaffold.init_fn is not None:
        return
    more = ", ..." if len(drawn) > _SHOWN else ""
    logging.warning(
        "There is no checkpoint in model_dir %s: %d of %d trainable variables have the values of "
        "their initializers, for mode %s (%s%s). Train first, or name a checkpoint_path.",
        captured.config.model_dir,
        len(drawn),
        len(trainable),
        captured.mode,
        ", ".join(drawn[:_SHOWN]),
        more,
    )


def _is_read(variable: tf.Variable) -> bool:  # from a file
    return any(
        op.type == "RestoreV2"
        for op in graph_ops.ancestors([graph_ops.as_operation(variable.initializer)], ())
    )
