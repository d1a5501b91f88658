"""The preparation of a mode: its replicas, its input, its graph."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.config import IterationsPerLoopCounter, RunConfig
from tpu_estimator_compat.config.arguments import check_steps
from tpu_estimator_compat.engine import inputs
from tpu_estimator_compat.engine import topology as topology_lib
from tpu_estimator_compat.engine.capture.capture import Element, new_graph, placeholders
from tpu_estimator_compat.engine.capture.user_functions import call_model_fn, input_arguments
from tpu_estimator_compat.engine.inputs import modes
from tpu_estimator_compat.engine.inputs.modes import InputMode, Invocation
from tpu_estimator_compat.engine.modes import runtimes
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode, prepare
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.host_stage import HostStageBuilder
from tpu_estimator_compat.engine.topology import Topology, TPUStrategy
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys, TPUEstimatorSpec

ModelFn = Callable[..., Any]
InputFn = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class PlainRules:
    """The rules of `Estimator`: batch sizes, loops and specs are the user's own.

    Attributes:
      model_fn: the user's function.
      params: the hyperparameters; functions get deep copies.
      config: the run configuration; likewise.
    """

    model_fn: ModelFn
    params: Any
    config: RunConfig

    def on_tpu(self, mode: str) -> bool:
        """Whether `mode` is asked to run on TPU."""
        return False

    def check_train_limits(self, steps: int | None, max_steps: int | None) -> None:
        """Refuses both limits at once, and senseless ones."""
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        check_steps(steps, "steps")
        check_steps(max_steps, "max_steps")

    def check_eval_steps(self, steps: int | None) -> None:
        """Refuses senseless steps."""
        check_steps(steps, "steps")

    def resolve(self, mode: str) -> InputMode:
        """The input of `mode`, on the replicas that the config names; checked.

        Raises:
          ValueError: the batch size or the configuration does not go with those replicas.
          RuntimeError: a TPU or another worker cannot be reached.
        """
        topology = topology_lib.resolve(self.config, mode, tpu_semantics=self.on_tpu(mode))
        input_mode = self.input_mode(mode, topology)
        input_mode.check()
        return input_mode

    def input_mode(self, mode: str, topology: Topology) -> InputMode:
        """The input of `mode` on any replicas, unchecked."""
        return modes.resolve(mode, None, topology)

    def loop(self, topology: Topology) -> IterationsPerLoopCounter | None:
        """The number of training steps between turns of the hooks; None where the hooks decide."""
        if isinstance(self.config.train_distribute, TPUStrategy):
            return IterationsPerLoopCounter(self.config.train_distribute.steps_per_run, "count")
        return None

    def element_spec(self, input_fn: InputFn, input_mode: InputMode) -> Any:
        """The structure of `tf.TypeSpec`s of one replica's input. Calls input_fn."""
        with new_graph(self.config.tf_random_seed):
            return self._feed(
                input_fn, input_mode, runtimes.of(input_mode.topology).new_store()
            ).element_spec

    def _feed(
        self, input_fn: InputFn, input_mode: InputMode, store: VariableStore
    ) -> inputs.DeployedInput:
        """Calls input_fn in the default graph, as often as it is to be called."""
        found = []
        for call in input_mode.invocations():
            arguments = self._input_arguments(input_fn, input_mode, call)
            called = inputs.call_input_fn(functools.partial(input_fn, **arguments), store)
            self._check(called, input_mode)
            found.append(called)
        compiled = input_mode.topology.compiles_steps or self.config.jit_compile
        return inputs.feed(found, input_mode, in_step=not compiled)

    def _check(self, called: inputs.CalledInput, input_mode: InputMode) -> None:
        """Looks at what input_fn returned."""
        input_mode.check_called(called)
        if input_mode.mode == ModeKeys.PREDICT:
            inputs.warn_if_endless(called)

    def capture(
        self,
        input_mode: InputMode,
        element_spec: Any,
        store: VariableStore | None = None,
        check_shapes: bool = True,
    ) -> CapturedMode:
        """Calls model_fn for a graph that replicas run.

        Args:
          input_mode: says which replicas.
          element_spec: the input of one of them: structure of `tf.TypeSpec`s.
          store: live variables to go on with; None for new ones.
          check_shapes: whether shapes must be static, where the rules of TPU execution hold.
        """
        # A store that is there already is that of a keras_model(), which has variables whole.
        stage = self._host_stage(input_mode, check_shapes, sharded=store is None)
        store = store or runtimes.of(input_mode.topology).new_store()
        with new_graph(self.config.tf_random_seed):
            element = placeholders(element_spec)
            return self._capture(input_mode, element, store, stage, check_shapes)

    def prepare(
        self, input_fn: InputFn, input_mode: InputMode, store: VariableStore | None = None
    ) -> tuple[CapturedMode, inputs.DeployedInput]:
        """Calls input_fn and model_fn, in one graph.

        Args:
          input_fn: the user's function.
          input_mode: says which replicas, and who calls input_fn.
          store: gets the live variables; None for a new one.
        """
        store = store or runtimes.of(input_mode.topology).new_store()
        trains = input_mode.mode == ModeKeys.TRAIN
        # What a script sees of variables is what it would have seen of those that it asked for.
        refs = not tf.compat.v1.resource_variables_enabled()
        with new_graph(self.config.tf_random_seed, reads_step=trains):
            feed = self._feed(input_fn, input_mode, store)
            stage = self._host_stage(input_mode, check_shapes=True, sharded=True)
            run = self._capture(input_mode, feed.element(), store, stage, check_shapes=True)
        if input_mode.topology.compiles_steps:
            for called in feed.called:
                inputs.check_apart(called, on_tpu=input_mode.topology.on_tpu)
        found = dataclasses.replace(run, same_on_all_replicas=feed.same_for_all, ref_variables=refs)
        return found, feed

    def _capture(
        self,
        input_mode: InputMode,
        element: Element,
        store: VariableStore,
        host_stage: HostStageBuilder | None,
        check_shapes: bool,
    ) -> CapturedMode:
        return prepare(
            lambda features, labels: self._call_model_fn(
                features, labels, input_mode, check_shapes
            ),
            input_mode.mode,
            self.config,
            input_mode.topology,
            element,
            store,
            host_stage=host_stage,
        )

    def _host_stage(
        self, input_mode: InputMode, check_shapes: bool, sharded: bool
    ) -> HostStageBuilder | None:
        """The builder of a graph's host stage, before the graph is captured; None for none."""
        return None

    def call_for_export(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        """Calls model_fn for a graph that this machine could run."""
        offered = {"mode": mode, **self._copies()}
        spec = call_model_fn(self.model_fn, features, labels, offered)
        if isinstance(spec, TPUEstimatorSpec):
            raise ValueError(
                "model_fn should return an EstimatorSpec. Got a TPUEstimatorSpec: use "
                "TPUEstimator, or return spec.as_estimator_spec()."
            )
        return spec

    def _call_model_fn(
        self, features: Any, labels: Any, input_mode: InputMode, check_shapes: bool
    ) -> EstimatorSpec | TPUEstimatorSpec:
        return self.call_for_export(features, labels, input_mode.mode)

    def _input_arguments(
        self, input_fn: InputFn, input_mode: InputMode, call: Invocation
    ) -> dict[str, Any]:
        context = inputs.context(input_mode.topology, call.host)
        offered = {"mode": input_mode.mode, **self._copies(), "input_context": context}
        return input_arguments(input_fn, offered)

    def _copies(self) -> dict[str, Any]:
        return {"params": copy.deepcopy(self.params), "config": copy.deepcopy(self.config)}
