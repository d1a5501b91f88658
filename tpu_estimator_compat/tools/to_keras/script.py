"""The graphs of a script's first training, or of an estimator: all modes, weights, a batch."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.checkpoint import diagnosis
from tpu_estimator_compat.engine.checkpoint.state import CheckpointSource
from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.engine.modes import preparation, runtimes
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.engine.modes.rules import InputFn, Rules
from tpu_estimator_compat.engine.refs import resource_graph
from tpu_estimator_compat.engine.session import initializers
from tpu_estimator_compat.engine.state.variables import READY_KEYS
from tpu_estimator_compat.engine.step.collectives import SUMS
from tpu_estimator_compat.keras_model import calls
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tf_internals import nest
from tpu_estimator_compat.tools.to_keras.graph import WEIGHT, Node, Program, Weight
from tpu_estimator_compat.tools.to_keras.reading import read
from tpu_estimator_compat.tools.to_keras.saved_model import fill_tables
from tpu_estimator_compat.tools.to_keras.training import metrics

_SEED = 1  # of initial values, where the config has none


class Reached(SystemExit):
    """Ends a script at its first training, as a SystemExit, which scripts do not catch."""


def first_training(run: Callable[[], Any]) -> tuple[Any, InputFn] | None:
    """The estimator and the input_fn of the first `train` in `run`, which ends there.

    None where `run` returns before. Raises ValueError where it needs results before.
    """
    found: list[tuple[Any, InputFn]] = []

    def instead(call: Any) -> Any:
        if call.name == "train":
            found.append((call.owner, call.arguments["input_fn"]))
            raise Reached
        if call.name in ("evaluate", "predict"):
            raise Reached(
                f"The script calls {call.name}() before it trains, and nothing runs here. Call "
                "train() first, or export the model and give the SavedModel."
            )
        return call.make()

    try:
        with calls.observing(instead):
            run()
    except Reached as reached:
        if not found:
            raise ValueError(reached.code) from None
    return found[0] if found else None


@dataclasses.dataclass
class Mode:
    """A mode's captured graph, and a session of it with values for all variables.

    Attributes:
      inputs: by feature, the placeholders; `labels`: by the expression for a label, such as 'y' or
        'y["a"]', those of the labels.
      predictions: by name; empty where the spec has none.
      batch: the values of the placeholders, by name.
      metric_calls: see `training.metrics.Call`.
    """

    captured: CapturedMode
    session: tf.compat.v1.Session
    inputs: dict[str, tf.Tensor]
    labels: dict[str, tf.Tensor]
    predictions: dict[str, tf.Tensor]
    batch: dict[str, np.ndarray]
    metric_calls: list[Any]

    @property
    def graph(self) -> tf.Graph:
        """The captured graph on resource variables."""
        return resource_graph.of(self.captured.graph).graph

    def read(self, outputs: dict[str, tf.Tensor], weights: dict[str, Weight]) -> Program:
        """The program of tensors of the captured graph."""
        same = resource_graph.of(self.captured.graph).tensor
        given = [self.inputs, outputs, self.labels]
        inputs, outputs, labels = ({k: same(t) for k, t in each.items()} for each in given)
        program = read(self.graph, inputs, outputs, weights, labels, stops=True)
        with self.captured.in_graph():
            fill_tables(program, self.session)
        _drop_idle_stops(program)
        return program

    def run(self, fetches: Any) -> Any:
        """Values for the batch."""
        return self.session.run(fetches, self.batch)


def _drop_idle_stops(program: Program) -> None:
    """Drops what stops no gradient of a weight, or one of zero: of a mean in a variance."""
    users, trained = program.users(), dict[Node, bool]()
    for node in program.nodes():
        weight = node.attrs["weight"].trainable if node.kind == WEIGHT else False
        trained[node] = weight or any(trained[value.node] for value in node.inputs)
        if node.kind == "StopGradient":
            kinds = {user.kind for user in users.get(node.outputs[0], [])}
            if not trained[node] or kinds == {"SquaredDifference"}:
                program.replace(node.outputs[0], node.inputs[0])
            trained[node] = False


@dataclasses.dataclass
class Modes:
    """All modes that a model_fn serves, with weights by name and the global step."""

    modes: dict[str, Mode]
    weights: dict[str, Weight]
    features: dict[str, np.ndarray]
    labels: Any
    step: int


def of_estimator(estimator: Any, input_fn: InputFn) -> Modes:
    """The modes of an estimator on a signature like that of `input_fn`; trains and writes nothing.

    Weights are those that a training would begin with: of the newest checkpoint, or initial ones.
    Raises ValueError where input_fn, or model_fn in TRAIN, fails, or where no mode has predictions;
    other modes where model_fn fails are left out.
    """
    rules = _on_one_cpu(estimator._mode_rules)
    spec, element = _first_element(rules, input_fn)
    modes: dict[str, Mode] = {}
    for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
        calls: list[Any] = []
        with metrics.recorded(calls):
            try:
                captured = _captured(rules, mode, spec, element)
            except Exception as error:
                if mode == ModeKeys.TRAIN:
                    what = f"{type(error).__name__}: {error}"
                    words = f"model_fn failed on placeholders for the first batch: {what}"
                    raise ValueError(words) from error
                logging.warning("model_fn does not serve mode %r: %s", mode, error)
                continue
            modes[mode] = _mode(captured, element, estimator._warm_start_settings, calls)
    if not any(each.predictions for each in modes.values()):
        raise ValueError(
            "A Keras model has outputs, and model_fn gives predictions in no mode. Give them to "
            "the EstimatorSpec of PREDICT, or of TRAIN."
        )
    weights: dict[str, Weight] = {}
    for each in modes.values():
        weights |= _weights(each, set(weights))
    features, labels = preparation.split_element(element)
    step = weights[tf.compat.v1.GraphKeys.GLOBAL_STEP].value
    return Modes(modes, weights, _named(features), labels, int(0 if step is None else step))


def _on_one_cpu(rules: Rules) -> Rules:
    """The rules without a TPU, for which a Keras model has no code of its own."""
    seed = rules.config.tf_random_seed
    config = rules.config.replace(tf_random_seed=_SEED if seed is None else seed)
    return dataclasses.replace(rules, use_tpu=False, eval_on_tpu=False, config=config)


def _first_element(rules: Rules, input_fn: InputFn) -> tuple[Any, Any]:
    """The type of input_fn's elements, and the first of them, of arrays."""
    input_mode = preparation.resolve(rules, ModeKeys.TRAIN)
    with preparation._new_graph(rules, input_mode):
        store = runtimes.new_store(input_mode.topology)
        call = next(iter(input_mode.invocations()))
        called = rules.call_input_fn(input_fn, input_mode, call, store)
        tensors = called.element()
        if called.initializable is not None:
            key = tf.compat.v1.GraphKeys.TABLE_INITIALIZERS
            tf.compat.v1.add_to_collection(key, called.initializable.initializer)
        try:
            with tf.compat.v1.train.MonitoredSession() as session:
                values = session.run(nest.flatten(tensors, expand_composites=True))
        except tf.errors.OpError as error:
            raise ValueError(f"input_fn's first batch cannot be read: {error.message}") from error
    return called.element_spec, nest.pack_sequence_as(tensors, values, expand_composites=True)


def _captured(rules: Rules, mode: str, spec: Any, element: Any) -> CapturedMode:
    """A mode's graph for batches of any size, or of the element's where model_fn needs that."""
    input_mode = preparation.resolve(rules, mode)
    free = nest.map_structure(functools.partial(_with_batch, None), spec)
    try:
        return preparation.capture_on_placeholders(rules, input_mode, free, check_shapes=False)
    except Exception:
        size = next(len(array) for array in nest.flatten(element) if np.ndim(array))
        fixed = nest.map_structure(functools.partial(_with_batch, size), spec)
        found = preparation.capture_on_placeholders(rules, input_mode, fixed, check_shapes=False)
        logging.warning("model_fn takes batches of %d only in mode %r.", size, mode)
        return found


def _with_batch(size: int | None, spec: Any) -> Any:
    if isinstance(spec, (tf.TensorSpec, tf.SparseTensorSpec)) and spec.shape.rank:
        return type(spec)([size, *spec.shape.as_list()[1:]], spec.dtype)
    return spec


def _mode(captured: CapturedMode, element: Any, warm_start: Any, calls: list[Any]) -> Mode:
    features, labels = preparation.split_element(captured.element.structure)
    labels = None if captured.mode == ModeKeys.PREDICT else labels
    inputs = _named(features)
    predictions = captured.spec.predictions
    if predictions is not None and not isinstance(predictions, dict):
        predictions = {"output": predictions}
    arrays = nest.flatten(element, expand_composites=True)
    fed = {
        tensor.name: array for tensor, array in zip(captured.element.feeds, arrays, strict=False)
    }
    with captured.in_graph():
        session = _session(captured, warm_start)
    return Mode(captured, session, inputs, _texts(labels), dict(predictions or {}), fed, calls)


def session_of(graph: tf.Graph) -> tf.compat.v1.Session:
    """A session that ignores operations which it does not run, such as a TPU's."""
    pruned = tf.compat.v1.GraphOptions(place_pruned_graph=True)
    return tf.compat.v1.Session(graph=graph, config=tf.compat.v1.ConfigProto(graph_options=pruned))


def _session(captured: CapturedMode, warm_start: Any) -> tf.compat.v1.Session:
    """A session with the values that a training would begin with."""
    for op in captured.graph.get_operations():
        for i, tensor in enumerate(op.inputs):
            if tensor.op.type in SUMS:  # of one replica; a CPU has no kernel for it
                op._update_input(i, tensor.op.inputs[0])
    captured.start(warm_start)
    captured.functions.call(evaluates=captured.mode == ModeKeys.EVAL)
    scaffold = captured.functions.scaffold
    scaffold.finalize()
    captured.graph._unsafe_unfinalize()  # the gradient of its loss is added later
    session = session_of(captured.graph)

    def restore(path: str) -> None:
        with diagnosis.explained(captured.graph, scaffold.saver, path):
            scaffold.saver.restore(session, user_files.readable(path))

    if CheckpointSource(None, captured.config.model_dir).restore(restore) is None:
        initializers.put_in_order(captured.graph)
        session.run(scaffold.init_op, scaffold.init_feed_dict)
        if scaffold.init_fn:
            scaffold.init_fn(session)
    session.run(scaffold.local_init_op)
    return session


def _weights(mode: Mode, known: set[str]) -> dict[str, Weight]:
    """The variables of a mode by name, without those that are known already."""
    graph = mode.captured.graph
    trainable = {v.op.name for v in graph.get_collection("trainable_variables")}
    variables = {v.op.name: v for key in READY_KEYS for v in graph.get_collection(key)}
    new = {name: v for name, v in variables.items() if name not in known}
    with mode.captured.in_graph():
        unset = mode.session.run(tf.compat.v1.report_uninitialized_variables(list(new.values())))
        without = {name.decode() for name in unset}
        new = {name: variable for name, variable in new.items() if name not in without}
        values = mode.session.run({name: v.read_value() for name, v in new.items()})
    return {
        name: Weight(name, value.shape, new[name].dtype.base_dtype.name, name in trainable, value)
        for name, value in values.items()
    }


def _named(features: Any) -> dict[str, Any]:
    """Features flat, by name: of nested dicts "outer/inner"; "features" for one without a name."""
    found: dict[str, Any] = {}
    for path, value in nest.flatten_with_tuple_paths(features):
        name = "/".join(map(str, path)) or "features"
        parts = nest.flatten(value, expand_composites=True)
        kinds = ("indices", "values", "dense_shape") if len(parts) == 3 else range(len(parts))
        names = [name] if len(parts) == 1 else [f"{name}/{kind}" for kind in kinds]
        found.update(zip(names, parts, strict=True))
    return found


def _texts(labels: Any) -> dict[str, tf.Tensor]:
    """Labels by the expression for them where `y` is what input_fn gives."""
    if labels is None:
        return {}
    return {
        "y" + "".join(f"[{json.dumps(part)}]" for part in path): tensor
        for path, tensor in nest.flatten_with_tuple_paths(labels)
    }
