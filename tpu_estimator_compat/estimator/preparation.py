"""Prepares a mode for a call: its replicas, its input, its graph."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.config import RunConfig, session_config
from tpu_estimator_compat.engine import inputs
from tpu_estimator_compat.engine import topology as topology_lib
from tpu_estimator_compat.engine.capture.capture import Element, new_graph, placeholders
from tpu_estimator_compat.engine.capture.user_functions import announced
from tpu_estimator_compat.engine.inputs.input_mode import InputMode, TPUInputMode
from tpu_estimator_compat.engine.modes import runtimes
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode, capture_mode
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.host_stage import HostStageBuilder
from tpu_estimator_compat.environment import SESSION
from tpu_estimator_compat.estimator.rules import InputFn, Rules
from tpu_estimator_compat.spec import ModeKeys


def warn_of_idle_fields(config: RunConfig) -> None:
    """Warns of set fields that only sessions obey, unless they run the calls."""
    if not topology_lib.takes_session(config):
        session_config.warn_of_idle_fields(config.session_config)


def resolve(rules: Rules, mode: str) -> InputMode:
    """The input mode of `mode` on the config's replicas, checked."""
    topology = topology_lib.resolve(rules.config, mode, tpu_semantics=rules.on_tpu(mode))
    input_mode = rules.input_mode(mode, topology)
    input_mode.check()
    return input_mode


def _new_graph(
    rules: Rules, input_mode: InputMode, *, reads_step: bool = False
) -> contextlib.AbstractContextManager[tf.Graph]:
    topology = input_mode.topology
    for_session = topology.runtime == SESSION
    return new_graph(
        rules.config.tf_random_seed,
        resource_step=rules.resource_step or topology.num_replicas > 1,
        reads_step=reads_step,
        for_session=for_session,
        device_fn=_device_fn(rules.config) if for_session and reads_step else None,
    )


def _device_fn(config: RunConfig) -> Any:
    from tpu_estimator_compat.engine.original import loops

    return loops.device_fn(config)


def deploy_input(
    rules: Rules, input_fn: InputFn, input_mode: InputMode, store: VariableStore
) -> inputs.DeployedInput:
    """Calls input_fn in a graph of its own, for the replicas' input; variables go to `store`."""
    with _new_graph(rules, input_mode):
        return _deployed_input(rules, input_fn, input_mode, store)


def element_spec(rules: Rules, input_fn: InputFn, input_mode: InputMode) -> Any:
    """Structure of `tf.TypeSpec`s of one replica's input; calls input_fn."""
    store = runtimes.new_store(input_mode.topology)
    return deploy_input(rules, input_fn, input_mode, store).element_spec


def capture(
    rules: Rules,
    input_mode: InputMode,
    element_spec: Any,
    store: VariableStore | None = None,
    check_shapes: bool = True,
) -> CapturedMode:
    """Captures a mode: calls model_fn in a new graph, on placeholders for one replica's input."""
    # A given store belongs to keras_model(), which does not shard variables.
    stage = rules.host_stage(input_mode, check_shapes, sharded=store is None)
    store = store or runtimes.new_store(input_mode.topology)
    with _new_graph(rules, input_mode), _announced(input_mode):
        element = placeholders(element_spec)
        return _captured(rules, input_mode, element, store, stage, check_shapes)


def prepare(
    rules: Rules, input_fn: InputFn, input_mode: InputMode, store: VariableStore
) -> tuple[CapturedMode, inputs.DeployedInput]:
    """Calls input_fn, model_fn and the spec's functions in one graph; variables go to `store`."""
    trains = input_mode.mode == ModeKeys.TRAIN
    with _new_graph(rules, input_mode, reads_step=trains), _announced(input_mode):
        deployed_input = _deployed_input(rules, input_fn, input_mode, store)
        stage = rules.host_stage(input_mode, check_shapes=True, sharded=True)
        element = deployed_input.element()
        captured = _captured(rules, input_mode, element, store, stage, check_shapes=True)
        same = deployed_input.same_for_all
        captured = dataclasses.replace(captured, same_on_all_replicas=same)
        captured.functions.call(evaluates=input_mode.mode == ModeKeys.EVAL)
    if input_mode.topology.compiles_steps:
        for called in deployed_input.called:
            inputs.check_apart(called, on_tpu=input_mode.topology.on_tpu)
    return captured, deployed_input


def _announced(input_mode: InputMode) -> contextlib.AbstractContextManager[None]:
    """With `use_tpu=True`, logs around user functions: the original's own model_fn called them."""
    return announced() if isinstance(input_mode, TPUInputMode) else contextlib.nullcontext()


def _deployed_input(
    rules: Rules, input_fn: InputFn, input_mode: InputMode, store: VariableStore
) -> inputs.DeployedInput:
    found = []
    for call in input_mode.invocations():
        arguments = rules.input_arguments(input_fn, input_mode, call)
        called = inputs.call_input_fn(functools.partial(input_fn, **arguments), store)
        rules.check_input(called, input_mode)
        found.append(called)
    compiled = input_mode.topology.compiles_steps or rules.config.jit_compile
    return inputs.deploy(found, input_mode, in_step=not compiled)


def _captured(
    rules: Rules,
    input_mode: InputMode,
    element: Element,
    store: VariableStore,
    host_stage: HostStageBuilder | None,
    check_shapes: bool,
) -> CapturedMode:
    partition = rules.partition(input_mode, element.spec)
    captured = capture_mode(
        lambda features, labels: rules.call_model_fn(features, labels, input_mode, check_shapes),
        input_mode.mode,
        rules.config,
        input_mode.topology,
        element,
        store,
        host_stage=host_stage,
    )
    return dataclasses.replace(captured, partition=partition)
