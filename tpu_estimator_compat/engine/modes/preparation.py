"""Prepares a mode for a call: its replicas, its input, its graph."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.engine.capture.capture import (
    Element,
    capture,
    check_no_strings,
    new_graph,
    placeholders,
)
from tpu_estimator_compat.engine.capture.keras_layers import implicit_updates
from tpu_estimator_compat.engine.capture.replica_context import reported_loss
from tpu_estimator_compat.engine.capture.user_functions import announced
from tpu_estimator_compat.engine.graph.graph_ops import as_operation
from tpu_estimator_compat.engine.inputs import partitioning
from tpu_estimator_compat.engine.inputs.calling import check_apart, with_original_keys
from tpu_estimator_compat.engine.inputs.deployed_input import DeployedInput, deploy
from tpu_estimator_compat.engine.inputs.input_mode import InputMode, TPUInputMode
from tpu_estimator_compat.engine.inputs.padding import Padded
from tpu_estimator_compat.engine.modes import runtimes
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode, Spec
from tpu_estimator_compat.engine.modes.rules import InputFn, Rules
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step import collectives
from tpu_estimator_compat.engine.step.host_stage import HostStageBuilder
from tpu_estimator_compat.engine.topology import chosen_topology
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.environment import SESSION
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.spec.mode_spec import ModeSpec, mode_spec


def resolve(rules: Rules, mode: str) -> InputMode:
    """The input mode of `mode` on the config's replicas, checked."""
    topology = chosen_topology.resolve(rules.config, mode, tpu_semantics=rules.on_tpu(mode))
    input_mode = rules.input_mode(mode, topology)
    input_mode.check()
    return input_mode


def deploy_input(
    rules: Rules, input_fn: InputFn, input_mode: InputMode, store: VariableStore
) -> DeployedInput:
    """Calls input_fn in a graph of its own, for the replicas' input; variables go to `store`."""
    with _new_graph(rules, input_mode):
        return _deployed_input(rules, input_fn, input_mode, store)


def element_spec(rules: Rules, input_fn: InputFn, input_mode: InputMode) -> Any:
    """Structure of `tf.TypeSpec`s of one replica's input; calls input_fn."""
    store = runtimes.new_store(input_mode.topology)
    return deploy_input(rules, input_fn, input_mode, store).element_spec


def capture_on_placeholders(
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
) -> tuple[CapturedMode, DeployedInput]:
    """Calls input_fn, model_fn and the spec's functions in one graph; variables go to `store`."""
    trains = input_mode.mode == ModeKeys.TRAIN
    with _new_graph(rules, input_mode, reads_step=trains), _announced(input_mode):
        deployed_input = _deployed_input(rules, input_fn, input_mode, store)
        stage = rules.host_stage(input_mode, check_shapes=True, sharded=True)
        element, same = deployed_input.element(), deployed_input.same_for_all
        captured = _captured(rules, input_mode, element, store, stage, same_on_all_replicas=same)
        captured.functions.call(evaluates=input_mode.mode == ModeKeys.EVAL)
    if input_mode.topology.compiles_steps:
        for called in deployed_input.called:
            check_apart(called, on_tpu=input_mode.topology.on_tpu)
    return captured, deployed_input


def _new_graph(
    rules: Rules, input_mode: InputMode, *, reads_step: bool = False
) -> contextlib.AbstractContextManager[tf.Graph]:
    topology = input_mode.topology
    for_session = topology.runtime == SESSION
    return new_graph(
        rules.config.tf_random_seed,
        resource_step=rules.resource_step or topology.seen_strategy is not None,
        reads_step=reads_step,
        for_session=for_session,
        device_fn=device_fn(rules.config) if for_session and reads_step else None,
    )


def device_fn(config: RunConfig) -> Callable[[tf.Operation], str] | None:
    """The function that places a training's operations in a session; None without servers."""
    found: Callable[[tf.Operation], str] | None = config.device_fn
    if found:
        return found
    from tpu_estimator_compat.engine.packages import tensorflow_estimator

    return tensorflow_estimator.module("estimator")._get_replica_device_setter(config)


def _announced(input_mode: InputMode) -> contextlib.AbstractContextManager[None]:
    """With `use_tpu=True`, logs around user functions: the original's own model_fn called them."""
    return announced() if isinstance(input_mode, TPUInputMode) else contextlib.nullcontext()


def _deployed_input(
    rules: Rules, input_fn: InputFn, input_mode: InputMode, store: VariableStore
) -> DeployedInput:
    calls = input_mode.invocations()
    called = [rules.call_input_fn(input_fn, input_mode, call, store) for call in calls]
    compiled = input_mode.topology.compiles_steps or rules.config.jit_compile
    return deploy(called, input_mode, in_step=not compiled)


def _captured(
    rules: Rules,
    input_mode: InputMode,
    element: Element,
    store: VariableStore,
    host_stage: HostStageBuilder | None,
    check_shapes: bool = True,
    *,
    same_on_all_replicas: bool = False,
) -> CapturedMode:
    """Captures a mode in the default graph; initializes nothing."""
    mode, topology = input_mode.mode, input_mode.topology
    if topology.compiles:
        check_no_strings(element.spec)

    partition = _partition(rules, input_mode, element.spec)
    graph = tf.compat.v1.get_default_graph()
    call = functools.partial(_call_model_fn, rules, input_mode, host_stage, check_shapes)
    returned = capture(
        call,
        element,
        replicas=topology.num_replicas,
        strategy=topology.seen_strategy,
        tpu_semantics=topology.tpu_semantics,
        for_tpu=topology.on_tpu,
        compiled=topology.compiles_steps,
    )
    spec = mode_spec(returned, mode)
    if topology.seen_strategy is not None:  # on TPU, the first core was read
        store.joined.update(_joined_on_read(graph))
    updates = []
    if mode == ModeKeys.TRAIN:
        assert spec.loss is not None  # a spec of TRAIN has one
        wanted = [as_operation(spec.train_op), spec.loss.op]
        updates = implicit_updates(graph, wanted, element.feeds)
        _check_exchange(topology, graph)
    return CapturedMode(
        mode,
        rules.config,
        topology,
        graph,
        element,
        store,
        _with_reported_loss(spec, input_mode),
        updates,
        same_on_all_replicas=same_on_all_replicas,
        partition=partition,
        host_stage=host_stage,
    )


def _with_reported_loss(spec: ModeSpec, input_mode: InputMode) -> ModeSpec:
    """The spec with the loss of all replicas, of which there may be several."""
    mode, topology = input_mode.mode, input_mode.topology
    if mode == ModeKeys.PREDICT or topology.num_replicas == 1:
        return spec
    strategy = topology.seen_strategy if mode == ModeKeys.TRAIN else None
    loss = reported_loss(spec.loss, topology.num_replicas, strategy)
    return dataclasses.replace(spec, loss=loss)


def _check_exchange(topology: Topology, graph: tf.Graph) -> None:
    """Refuses training on TPU replicas that add nothing up over replicas, as the original did."""
    several = topology.tpu_semantics and topology.num_replicas > 1
    if several and not collectives.adds_up(graph):
        raise ValueError(
            "CrossShardOptimizer must be used for model training on TPUs. There are "
            f"{topology.num_replicas} replicas, and nothing in the graph of model_fn adds up "
            "over them: each would train on its own share of the batch. Wrap the optimizer in "
            "tf.compat.v1.tpu.CrossShardOptimizer."
        )


def _call_model_fn(
    rules: Rules,
    input_mode: InputMode,
    host_stage: HostStageBuilder | None,
    check_shapes: bool,
    element: Any,
) -> Spec:
    features, labels = model_arguments(element, input_mode.mode)
    if host_stage is None:
        return rules.call_model_fn(features, labels, input_mode, check_shapes)
    features = host_stage.enter(features)
    spec = rules.call_model_fn(features, labels, input_mode, check_shapes)
    host_stage.leave()
    return spec


def _partition(rules: Rules, input_mode: InputMode, element_spec: Any) -> list[Any] | None:
    """Splits of a replica's input over its cores, one entry per tensor; None for no split."""
    tpu_config, topology = rules.tpu_config, input_mode.topology
    if not topology.tpu_semantics or not tpu_config or tpu_config.input_partition_dims is None:
        return None
    features, labels = model_arguments(element_spec, input_mode.mode)
    dims, cores = tpu_config.input_partition_dims, tpu_config.num_cores_per_replica
    found = partitioning.partition_dims(features, labels, dims, cores)
    if not topology.compiles:
        partitioning.log_fallback(input_mode.mode)
    flat = tf.nest.flatten(element_spec, expand_composites=True)
    return found + [None] * (len(flat) - len(found))  # the padding mask is not split


def _joined_on_read(graph: tf.Graph) -> dict[str, tf.VariableAggregation]:
    return {
        v.op.name: v.aggregation
        for v in graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES)
        if v.synchronization == tf.VariableSynchronization.ON_READ
        and v.aggregation in (tf.VariableAggregation.SUM, tf.VariableAggregation.MEAN)
    }


def split_element(element: Any) -> tuple[Any, Any]:
    """(features, labels) of an input element; labels are None where there are none."""
    if isinstance(element, (list, tuple)):
        if len(element) != 2:
            raise ValueError(
                "input_fn should return (features, labels) as a len 2 tuple. "
                f"Got {len(element)} elements."
            )
        return element[0], _given(element[1])
    return element, None


def _given(part: Any) -> Any:
    return None if isinstance(part, tuple) and not part else part  # () stands for None


class PredictFeatures(dict):
    """Features of a prediction, with a hidden item `features['is_padding']`.

    It is not among the keys, so that a model_fn that iterates over them sees only its own features.
    Keras layers make other dicts of this type, empty at first, without `is_padding`.
    """

    def __init__(self, features: Any = (), is_padding: tf.Tensor | None = None):
        super().__init__(features)
        self._is_padding = is_padding

    def __missing__(self, name: str) -> tf.Tensor:
        if name == "is_padding" and self._is_padding is not None:
            return self._is_padding
        raise KeyError(name)


def model_arguments(element: Any, mode: str) -> tuple[Any, Any]:
    if isinstance(element, Padded):
        features, labels = element.features, element.labels
        if type(features) is dict:
            features = PredictFeatures(features, element.is_padding)
        return features, _given(labels)
    if mode == ModeKeys.PREDICT:
        return with_original_keys(_given(split_element(element)[0])), None
    features, labels = split_element(element)
    return with_original_keys(_given(features)), labels
