"""The plan of a step of each mode, from the result of model_fn.

Call these functions in `CapturedMode.in_graph()`, since they build the host part of the step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.graph.graph_ops import as_operation
from tpu_estimator_compat.engine.inputs.padding import Padded
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.engine.modes.metrics import LOSS, Pairs, metric_pairs
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tf_internals import evaluation


def training_plan(mode: CapturedMode) -> StepPlan:
    """A step of training: train_op, updates by Keras and of the host stage, and the host call."""
    spec, calls = mode.spec, mode.functions.host_calls
    assert spec.loss is not None  # a spec of TRAIN has one
    targets = [as_operation(spec.train_op), *mode.implicit_updates, *calls]
    if mode.host_stage is not None:
        targets += mode.host_stage.updates(mode.functions.host)
    plan = _plan(mode, [spec.loss], targets, calls)
    every = 1
    if mode.topology.tpu_semantics:  # otherwise the original made the host call in every step
        config: Any = mode.config  # a TPU config, since `use_tpu=True`
        every = config.tpu_config.experimental_host_call_every_n_steps
    return dataclasses.replace(
        plan, host_calls_every=every, jit_compile=_jit_compile(mode), trains=True
    )


def evaluation_plan(mode: CapturedMode) -> tuple[StepPlan, Pairs]:
    """A step of evaluation (metric updates, host call, step count), and the metrics' pairs."""
    pairs, calls = metric_pairs(mode), mode.functions.host_calls
    count = tf.compat.v1.assign_add(evaluation._get_or_create_eval_step(), 1, use_locking=True)
    targets = [*(update for _, update in pairs.values()), *calls, count.op]
    assert mode.spec.loss is not None  # a spec of EVAL has one
    return _plan(mode, [mode.spec.loss], targets, calls), pairs


def prediction_plan(mode: CapturedMode, predictions: Any) -> tuple[StepPlan, dict[str, Any]]:
    """A step of prediction, and its fetches as a dict; with `use_tpu=True` over all replicas."""
    host, calls = mode.functions.host, mode.functions.host_calls
    fetches: dict[str, Any] = {"predictions": predictions, "host_call": calls}
    if mode.topology.tpu_semantics:
        is_padding = Padded(*mode.element.structure).is_padding
        fetches = {
            "predictions": tf.nest.map_structure(host.over_replicas, predictions),
            "is_padding": host.over_replicas(is_padding),
            "host_call": calls,
        }
    flat = tf.nest.flatten(fetches)
    tensors = [f for f in flat if not isinstance(f, tf.Operation)]
    operations = [f for f in flat if isinstance(f, tf.Operation)]
    return _plan(mode, tensors, operations, calls), fetches


def plan_without_hooks(mode: CapturedMode) -> tuple[StepPlan, dict[str, tf.Tensor]]:
    """A step for Keras' loops; except in PREDICT, with the host calls of session hooks.

    The plan returns the loss, or in PREDICT the flat predictions over all replicas. In EVAL it
    comes with metric values by name, which a step does not fetch.
    """
    if mode.mode == ModeKeys.PREDICT:
        host = mode.functions.host
        flat = [host.over_replicas(t) for t in tf.nest.flatten(mode.spec.predictions)]
        return _plan(mode, flat, [], []), {}
    called = [as_operation(x) for x in mode.spec.called_on_host]
    if mode.mode == ModeKeys.TRAIN:
        plan = training_plan(mode)
        return dataclasses.replace(plan, targets=[*plan.targets, *called]), {}
    plan, pairs = evaluation_plan(mode)
    values = {name: value for name, (value, _) in pairs.items() if name != LOSS}
    return dataclasses.replace(plan, targets=[*plan.targets, *called]), values


def _plan(
    mode: CapturedMode,
    fetches: Sequence[tf.Tensor],
    targets: Sequence[tf.Operation],
    host_calls: Sequence[tf.Operation],
) -> StepPlan:
    """A plan of `mode`; Keras' updates and the spec's ops belong to the replicas."""
    spec = mode.spec
    named = [spec.loss, spec.train_op, *tf.nest.flatten(spec.predictions)]
    operations = [as_operation(x) for x in named if x is not None]
    operations += mode.implicit_updates
    return StepPlan(
        graph=mode.graph,
        element_spec=mode.element.spec,
        feeds=mode.element.feeds,
        made_of=mode.element.made_of,
        fetches=tuple(fetches),
        targets=tuple(targets),
        loss=None if mode.mode == ModeKeys.PREDICT else spec.loss,
        replica_ops=frozenset(op.name for op in operations),
        host_placeholders=mode.functions.host.made,
        host_stage=None if mode.host_stage is None else mode.host_stage.stage,
        host_calls=frozenset(op.name for op in host_calls),
        same_on_all_replicas=mode.same_on_all_replicas,
        partition=mode.partition,
    )


def _jit_compile(mode: CapturedMode) -> bool:
    asked = mode.topology.num_replicas == 1 and mode.config.jit_compile
    if asked and not environment.has_xla_for_cpu():
        logging.warning("jit_compile has no effect: tensorflow-tpu has no XLA for the CPU.")
        return False
    return asked
