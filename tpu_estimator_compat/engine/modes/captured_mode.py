"""The captured graph of one call of train, evaluate or predict, with its live variables."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import RunConfig, TaskType
from tpu_estimator_compat.engine.capture import graph_building
from tpu_estimator_compat.engine.capture.capture import (
    CapturedGraph,
    Element,
    capture,
)
from tpu_estimator_compat.engine.capture.element_names import check_no_strings
from tpu_estimator_compat.engine.capture.implicit_updates import implicit_updates
from tpu_estimator_compat.engine.checkpoint import latest
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import as_operation
from tpu_estimator_compat.engine.inputs.calling import with_original_keys
from tpu_estimator_compat.engine.inputs.padding import Padded
from tpu_estimator_compat.engine.modes.spec_functions import SpecFunctions
from tpu_estimator_compat.engine.runtime import placement, user_files
from tpu_estimator_compat.engine.state import shards
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.host_placeholders import HostPlaceholders
from tpu_estimator_compat.engine.step.host_stage import HostStageBuilder
from tpu_estimator_compat.engine.step.partition import Dims
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.topology import Topology
from tpu_estimator_compat.environment import SESSION
from tpu_estimator_compat.spec import (
    EstimatorSpec,
    ModeKeys,
    TPUEstimatorSpec,
    WarmStartSettings,
    check_checkpoint_exists,
)
from tpu_estimator_compat.spec.mode_spec import ModeSpec, mode_spec

Spec = EstimatorSpec | TPUEstimatorSpec


@dataclasses.dataclass(frozen=True)
class CapturedMode:
    """The captured graph of one mode, with its live variables, topology and spec.

    Attributes:
      mode: a `ModeKeys` value.
      implicit_updates: writes by Keras' code that belong to a training step.
      same_on_all_replicas: whether all replicas compute the same from the same elements.
      partition: for each feed, the number of parts along each dimension, or None to replicate it;
        None for no partitioning at all.
    """

    mode: str
    config: RunConfig
    topology: Topology
    captured: CapturedGraph
    store: VariableStore
    spec: ModeSpec
    implicit_updates: Sequence[tf.Operation] = ()
    same_on_all_replicas: bool = False
    partition: Sequence[Dims] | None = None
    host_stage: HostStageBuilder | None = None

    @property
    def graph(self) -> tf.Graph:
        return self.captured.graph

    @contextlib.contextmanager
    def in_graph(self) -> Iterator[None]:
        """A context in which TF1 code can continue to build the captured graph."""
        semantics = graph_building.capture_semantics(for_session=self.topology.runtime == SESSION)
        with semantics, self.graph.as_default():
            yield

    @functools.cached_property
    def functions(self) -> SpecFunctions:
        """The functions of the spec, to be called in `in_graph()`."""
        replicas, same = self.topology.num_replicas, self.same_on_all_replicas
        host = HostPlaceholders(self.graph, replicas, same_on_all_replicas=same)
        return SpecFunctions(self.spec, host)

    @property
    def writes_files(self) -> bool:
        """Whether this process, as chief or evaluator, writes checkpoints and events."""
        if group := self.topology.workers:
            return group.is_chief
        chief = self.config.is_chief or self.config.task_type == TaskType.EVALUATOR
        return chief and self.topology.is_first_process

    def settle_devices(self, plan: StepPlan) -> None:
        """Refuses devices that do not exist, unless the session config allows soft placement."""
        if self.topology.tpu_semantics or self.topology.workers:
            return  # other devices stand in for a TPU's cores
        config = self.config.session_config
        soft = config is None or config.allow_soft_placement
        assigned = [("global_step", device) for device in placement.devices(self.topology.strategy)]
        if not soft:
            needed = graph_ops.ancestors([*(t.op for t in plan.fetches), *plan.targets], ())
            ops = map(graph_ops.original, graph_ops.in_creation_order(needed))
            assigned += [(op.name, op.device) for op in ops]
        placement.settle(assigned, soft=soft)

    def warm_start(self, settings: WarmStartSettings | None) -> None:
        """Warm-starts variables, unless model_dir has a checkpoint; called in `in_graph()`."""
        if settings is None or latest(self.config.model_dir):
            return
        check_checkpoint_exists(settings)
        logging.info("Warm-starting with WarmStartSettings: %s", settings)
        path, *others = settings
        with shards.grouped(self.graph):
            tf.compat.v1.train.warm_start(_for_tensorflow(path), *others)


def _for_tensorflow(path: str) -> str:
    """A path of a checkpoint, or of a folder of checkpoints, without wildcards."""
    if user_files.readable(path) == os.fsdecode(path):
        return path
    return user_files.readable(latest(path) or path)


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


def capture_mode(
    call_model_fn: Callable[[Any, Any], Spec],
    mode: str,
    config: RunConfig,
    topology: Topology,
    element: Element,
    store: VariableStore,
    host_stage: HostStageBuilder | None = None,
) -> CapturedMode:
    """Captures a mode in the default graph; initializes nothing.

    `call_model_fn` takes features and labels, returns model_fn's spec; `store` gets the variables.
    """
    if topology.compiles:
        check_no_strings(element.spec)

    def call(element: Any) -> Spec:
        features, labels = model_arguments(element, mode)
        if host_stage is None:
            return call_model_fn(features, labels)
        spec = call_model_fn(host_stage.enter(features), labels)
        host_stage.leave()
        return spec

    captured = capture(
        call,
        element,
        replicas=topology.num_replicas,
        tpu_semantics=topology.tpu_semantics,
        for_tpu=topology.on_tpu,
        compiled=topology.compiles_steps,
    )
    if topology.num_replicas > 1 and not topology.tpu_semantics:  # on TPU, the first core was read
        store.average_on_read(_averaged(captured.graph))
    spec, updates = mode_spec(captured.spec, mode), []
    if mode == ModeKeys.TRAIN:
        assert spec.loss is not None  # a spec of TRAIN has one
        updates = implicit_updates(captured.graph, [as_operation(spec.train_op), spec.loss.op])
    return CapturedMode(
        mode, config, topology, captured, store, spec, updates, host_stage=host_stage
    )


def _averaged(graph: tf.Graph) -> list[str]:
    return [
        v.op.name
        for v in graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES)
        if v.synchronization == tf.VariableSynchronization.ON_READ
        and v.aggregation == tf.VariableAggregation.MEAN
    ]
