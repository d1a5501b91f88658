"""The captured graph of one call of train, evaluate or predict, with its live variables."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import RunConfig, TaskType
from tpu_estimator_compat.engine.capture import graph_building
from tpu_estimator_compat.engine.capture.capture import Element
from tpu_estimator_compat.engine.checkpoint.state import latest, named
from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.engine.functions import placement
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import as_operation
from tpu_estimator_compat.engine.state import shards
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.host_calls import HostPlaceholders
from tpu_estimator_compat.engine.step.host_stage import HostStageBuilder
from tpu_estimator_compat.engine.step.plan import Dims, StepPlan
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.environment import SESSION
from tpu_estimator_compat.spec import (
    EstimatorSpec,
    ModeKeys,
    TPUEstimatorSpec,
    WarmStartSettings,
    check_checkpoint_exists,
)
from tpu_estimator_compat.spec.mode_spec import ModeSpec
from tpu_estimator_compat.spec.tpu_estimator_spec import check_host_call
from tpu_estimator_compat.tf_internals import _FetchHandler

Spec = EstimatorSpec | TPUEstimatorSpec


class SpecFunctions:
    """The results of `scaffold_fn`, `metric_fn` and the function of `host_call`.

    Each is called once, in `call` or at first use: in the captured graph, on `host`'s placeholders
    for tensors of all replicas.
    """

    def __init__(self, spec: ModeSpec, mode: str, host: HostPlaceholders):
        self._spec, self._mode = spec, mode
        self.host = host

    def call(self, *, evaluates: bool) -> None:
        """Calls the functions of a mode in the original's order."""
        _ = self.scaffold
        if evaluates:
            _ = self.metrics
        _ = self.host_calls

    @functools.cached_property
    def scaffold(self) -> tf.compat.v1.train.Scaffold:
        return self._spec.make_scaffold()

    @functools.cached_property
    def metrics(self) -> dict[str, Any]:
        """Name to `(value, update_op)` or Keras metric."""
        metrics: Any = self._spec.metrics
        if self._spec.eval_metrics is not None:
            metrics = self.host.call("eval_metrics", self._spec.eval_metrics)
        if not isinstance(metrics, dict):
            raise TypeError(f"metric_fn must return a dict of metrics, given: {metrics!r}")
        return metrics

    @functools.cached_property
    def host_calls(self) -> list[tf.Operation]:
        """The ops that the function of `host_call` returned."""
        call = self._spec.host_call
        check_host_call("host_call", call)  # a spec's _replace does not check
        sent = [each[1] for each in (self._spec.eval_metrics, call) if each]
        if self._mode == ModeKeys.EVAL and sent and not any(map(len, sent)):
            raise ValueError(
                "Attr 'dtypes' of 'OutfeedEnqueueTuple' Op passed list of length 0 less than "
                "minimum 1. Pass at least one tensor in eval_metrics[1] or host_call[1]."
            )
        if call is None or (self._mode == ModeKeys.TRAIN and not call[1]):  # as in the original
            return []
        returned = self.host.call("host_call", call)
        if returned is None and self._mode == ModeKeys.PREDICT:
            return []
        try:
            fetched = _FetchHandler(self.host.graph, [returned], {})
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{error} The function of host_call must return the tensors and operations that "
                f"run in each step, or [] for none. It returned {returned!r}."
            ) from None
        ops = map(as_operation, [*fetched.fetches(), *fetched.targets()])
        return [op for op in ops if (op.name, 0) not in self.host.made]


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
    graph: tf.Graph
    element: Element
    store: VariableStore
    spec: ModeSpec
    implicit_updates: Sequence[tf.Operation] = ()
    same_on_all_replicas: bool = False
    partition: Sequence[Dims] | None = None
    host_stage: HostStageBuilder | None = None

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
        return SpecFunctions(self.spec, self.mode, host)

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

    def start(self, warm_start: WarmStartSettings | None) -> None:
        """Warm-starts variables and makes the scaffold, before steps are planned; in `in_graph()`.

        The variables of a checkpoint in model_dir need no warm start.
        """
        if warm_start is not None and not latest(self.config.model_dir):
            self._warm_start(warm_start)
        own = self.graph.get_collection(tf.compat.v1.GraphKeys.READY_OP)
        self.store.has_own_ready_op = bool(own) or self.functions.scaffold.ready_op is not None

    def _warm_start(self, settings: WarmStartSettings) -> None:
        path = self._found(settings)
        logging.info("Warm-starting with WarmStartSettings: %s", settings)
        with shards.grouped(self.graph):
            tf.compat.v1.train.warm_start(path, *settings[1:])

    def _found(self, settings: WarmStartSettings) -> str:
        """The path to warm-start from; of a folder that of its newest checkpoint, held open.

        The training that writes there may remove it before variables are initialized, or while it
        is looked for: then the newest is looked for again.
        """
        path, seen = os.fsdecode(settings.ckpt_to_initialize_from), None
        is_here = tf.io.gfile.isdir(path) and not self.config.cluster_spec  # no parameter servers
        while is_here and (newest := next(reversed(named(path)), None)) != seen:
            if held := user_files.held(str(newest), self.graph):
                found = _Held(held)
                found.shown = path
                return found
            seen = newest
        check_checkpoint_exists(settings)
        return _for_tensorflow(path)


class _Held(str):
    """A path that log lines and errors of TensorFlow show as the user gave it."""

    shown = ""

    def __str__(self) -> str:
        return self.shown


def _for_tensorflow(path: str) -> str:
    """A path of a checkpoint, or of a folder of checkpoints, without wildcards."""
    if user_files.readable(path) == os.fsdecode(path):
        return path
    return user_files.readable(latest(path) or path)
