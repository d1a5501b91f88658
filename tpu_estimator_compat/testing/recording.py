"""Records what an estimator's steps compute: a model_fn around the user's, and a hook."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.capture.patches import Function, patched
from tpu_estimator_compat.engine.capture.replica_context import REPORTED_LOSS
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.graph.graph_ops import ancestors, as_operation
from tpu_estimator_compat.engine.state.variables import components
from tpu_estimator_compat.spec import ModeKeys, TPUEstimatorSpec
from tpu_estimator_compat.testing.subject import Subject

v1 = tf.compat.v1


class Recorder(v1.train.SessionRunHook):  # type: ignore[name-defined]
    """Replaces a subject's model_fn, and is a hook of the call; records the values of `Result`.

    Attributes:
      spec, graph: the last result of model_fn, and the graph of that call.
      most_steps: the number of training steps after which it requests a stop, even if train_op
        leaves the global step unchanged; None for no limit.
    """

    def __init__(self, subject: Subject):
        self._subject = subject
        self._applied: dict[str, Any] = {}
        self._fetched: dict[str, tf.Tensor] = {}
        self.spec: Any = None
        self.graph: Any = None
        self.losses: list[float] = []
        self.before: dict[str, np.ndarray] = {}
        self.after: dict[str, np.ndarray] = {}
        self.disagreement: dict[str, float] = {}
        self.gradients: dict[str, np.ndarray | None] = {}
        self.host_calls: list[dict[str, np.ndarray]] = []
        self.global_step = 0
        self.trainable: list[str] = []
        self.most_steps: int | None = None

    def model_fn(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
        """The result of the subject's model_fn, with a host_call that is recorded."""
        self._applied.clear()
        with _watched_optimizers(self._note_gradients):
            self.spec = self._subject.call(features, labels, mode, params, config)
        self.graph = v1.get_default_graph()
        called = getattr(self.spec, "host_call", None)
        if isinstance(self.spec, TPUEstimatorSpec) and called is not None:
            return self.spec._replace(host_call=(self._recorded(called[0]), called[1]))
        return self.spec

    def _note_gradients(self, pairs: list[tuple[Any, Any]]) -> None:
        """Keeps the last gradients: those of an inner optimizer, called later, are applied."""
        self._applied.update((_name(variable), gradient) for gradient, variable in pairs)

    def _recorded(self, function: Function) -> Function:
        def host_call(*args: Any, **kwargs: Any) -> Any:
            named = {**{str(i): value for i, value in enumerate(args)}, **kwargs}
            names, values = list(named), list(named.values())

            def keep(*arrays: np.ndarray) -> None:
                copies = [np.array(array) for array in arrays]
                self.host_calls.append(dict(zip(names, copies, strict=True)))

            kept = tf.numpy_function(keep, values, [])
            done = [
                as_operation(x) for x in tf.nest.flatten(function(*args, **kwargs)) if x is not None
            ]
            return tf.group(kept, *done)

        return host_call

    # As a hook.

    def begin(self) -> None:
        with self.graph.as_default():
            self._variables = {_name(v): v for v in v1.global_variables()}
            self.trainable = [_name(v) for v in v1.trainable_variables()]
            self._fetched = {
                name: tf.convert_to_tensor(gradient)
                for name, gradient in self._applied.items()
                if gradient is not None and self._can_be_fetched(gradient)
            }
        self.gradients = {name: None for name, g in self._applied.items() if g is None}
        joined = [op for op in self.graph.get_operations() if op.name.startswith(REPORTED_LOSS)]
        self._loss = joined[-1].outputs[0] if joined else self.spec.loss

    def _can_be_fetched(self, gradient: Any) -> bool:
        tensor = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
        of_graph = getattr(tensor, "graph", None) is self.graph
        return of_graph and tensor.op._get_control_flow_context() is None

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        self.before = _copied(session.run(self._variables))

    def before_run(self, run_context: Any) -> Any:
        del run_context
        first = {} if self.losses else {"gradients": self._fetched}
        loss = {} if self._loss is None else {"loss": self._loss}
        return v1.train.SessionRunArgs({**loss, **first})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        found = run_values.results
        self.gradients.update(_copied(found.get("gradients", {})))
        if "loss" in found:
            self.losses.append(float(np.mean(found["loss"])))
        if self.spec.mode == ModeKeys.TRAIN and len(self.losses) == self.most_steps:
            run_context.request_stop()

    def end(self, session: Any) -> None:
        self.after = _copied(session.run(self._variables))
        self.global_step = int(session.run(v1.train.get_global_step(self.graph)))
        with eager.eager_mode():
            for name in self._variables:
                first, *others = [part.numpy() for part in components(session.store[name])]
                if others and first.dtype.kind in "fiu":
                    self.disagreement[name] = max(_difference(first, other) for other in others)

    def update_ops(self) -> tuple[list[str], list[str]]:
        """Names of the operations of UPDATE_OPS that train_op runs, and of the others."""
        asked = [as_operation(op) for op in self.graph.get_collection(v1.GraphKeys.UPDATE_OPS)]
        targets = [] if self.spec.train_op is None else [as_operation(self.spec.train_op)]
        run = ancestors(targets, ())
        return [op.name for op in asked if op in run], [op.name for op in asked if op not in run]


@contextlib.contextmanager
def _watched_optimizers(note: Callable[[list[tuple[Any, Any]]], None]) -> Iterator[None]:
    """A context in which `note` gets the gradients and variables of each `apply_gradients`."""

    def watched(apply: Function, self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = list(grads_and_vars)
        note(pairs)
        return apply(self, pairs, *args, **kwargs)

    with contextlib.ExitStack() as patches:
        for kind in _kinds(v1.train.Optimizer):
            patches.enter_context(patched(kind, "apply_gradients", watched))
        yield


def _kinds(kind: type) -> Iterator[type]:
    """The class and its subclasses with an `apply_gradients` of their own."""
    if "apply_gradients" in vars(kind):
        yield kind
    each: type
    for each in kind.__subclasses__():
        yield from _kinds(each)


def _difference(one: np.ndarray, other: np.ndarray) -> float:
    """The largest absolute difference; 0 for equal arrays, even with NaN and infinity."""
    if np.array_equal(one, other, equal_nan=True):
        return 0.0
    return float(np.max(np.abs(one.astype(float) - other.astype(float)), initial=0))


def _name(variable: Any) -> str:
    return str(variable.op.name)


def _copied(values: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.array(value) for name, value in values.items()}
