"""The modes of a model that is used through Keras: captured on first use, on one set of variables.

An estimator's calls each start from a checkpoint with variables of their own; a keras.Model lives
on, so its modes share a store, and checkpoints are read only where they are newer than the model.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, cast

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.engine.capture.capture import plain_element
from tpu_estimator_compat.engine.checkpoint import Source, diagnosis, latest, read_variables
from tpu_estimator_compat.engine.graph.sources import with_lines
from tpu_estimator_compat.engine.inputs import feature_keys
from tpu_estimator_compat.engine.modes import first_values, runtimes
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode, split_element
from tpu_estimator_compat.engine.modes.plans import ModelStep, model_step
from tpu_estimator_compat.engine.modes.training import (
    add_default_saver,
    with_metrics_initialized,
)
from tpu_estimator_compat.engine.session.graph_session import GraphSession
from tpu_estimator_compat.engine.session.runner import Runner
from tpu_estimator_compat.engine.session.session_creator import SessionCreator
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.topology import Topology
from tpu_estimator_compat.keras_model import elements
from tpu_estimator_compat.spec import HostCallHook, ModeKeys, WarmStartSettings


class ElementRunner(Runner, Protocol):
    """A runner that also takes elements which Keras has in its hand."""

    def element_function(self) -> Callable[[Any], list[Any]]:
        """A function of the input element of all replicas that returns the plan's fetches."""
        ...


Capture = Callable[[str, Any, VariableStore], CapturedMode]
Build = Callable[[str, Any], None]
GraphKeys = tf.compat.v1.GraphKeys


@dataclasses.dataclass(frozen=True)
class KerasMode:
    """One mode, ready to run.

    Attributes:
      run: its captured graph.
      step: the computation of its steps.
      runner: makes them.
      session: host work on the same variables.
      scaffold: its saver and initialisers.
      writers: opens and flushes the summary writers of host calls.
    """

    run: CapturedMode
    step: ModelStep
    runner: ElementRunner
    session: GraphSession
    scaffold: tf.compat.v1.train.Scaffold
    writers: HostCallHook

    def flush(self) -> None:
        """Writes out the summaries of host calls."""
        with self.run.in_graph():
            self.writers.end(self.session)

    def variables(self) -> list[tuple[str, bool]]:
        """(name, whether trainable) of the model's variables, local ones left out."""
        trainable = set(self.step.plan.trainable_names())
        names = [v.op.name for v in self.run.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)]
        return [(name, name in trainable) for name in names if name in self.run.store]

    @property
    def element_spec(self) -> Any:
        """The structure of `tf.TypeSpec`s of one replica's input."""
        return self.run.captured.element_spec

    def metric_readers(self) -> dict[str, Callable[[], np.ndarray]]:
        """For every metric, a function that reads its value."""
        return {n: functools.partial(self.session.run, t) for n, t in self.step.values.items()}

    def reset_metrics(self) -> None:
        """Sets local variables back to their first values."""
        self.session.run(self.scaffold.local_init_op)

    def packed(self, outputs: Sequence[tf.Tensor]) -> Any:
        """`outputs` of the program in the structure of the spec's predictions."""
        return tf.nest.pack_sequence_as(self.run.spec.predictions, outputs)


class KerasModes:
    """The modes of one model by `ModeKeys` value.

    Args:
      capture: captures a mode.
      topology: the replicas.
      config: says where checkpoints are.
      warm_start: the source of first values if there is no checkpoint.
    """

    def __init__(
        self,
        capture: Capture,
        topology: Topology,
        config: RunConfig,
        warm_start: WarmStartSettings | None,
    ):
        self.store = runtimes.of(topology).new_store()
        self._topology = topology
        self._capture = capture
        self._config = config
        self._warm_start = warm_start
        self._modes: dict[str, KerasMode] = {}
        self._interrupted: Callable[[], bool] = lambda: False
        self._checkpoint: str | None = None
        self._predict_function: Any = None

    def __contains__(self, mode: str) -> bool:
        return mode in self._modes

    def __getitem__(self, mode: str) -> KerasMode:
        return self._modes[mode]

    @contextlib.contextmanager
    def ending_early(self, interrupted: Callable[[], bool]) -> Iterator[None]:
        """Within, long loops of steps end early where `interrupted` says so."""
        before, self._interrupted = self._interrupted, interrupted
        try:
            yield
        finally:
            self._interrupted = before

    def build(self, mode: str, element_spec: Any) -> KerasMode:
        """Captures `mode`, creates what variables it adds, and gives those values."""
        run = self._capture(mode, element_spec, self.store)
        with run.in_graph():
            run.warm_start(self._warm_start)
            scaffold = run.spec.make_scaffold()
            step = model_step(run)
            if mode == ModeKeys.EVAL:
                scaffold = with_metrics_initialized(scaffold)
            runner = self._runner(run, step.plan)
            if mode == ModeKeys.TRAIN:
                add_default_saver(run, scaffold)
            writers = HostCallHook([])
            writers.begin()
            session = self._session(run, scaffold)
            built = KerasMode(run, step, runner, session, scaffold, writers)
            writers.after_create_session(session, None)
        self._modes[mode] = built
        return built

    def renew(self, mode: str) -> None:
        """Makes the steps of `mode` anew, whose graph has changed."""
        built = self._modes[mode]
        built.runner.finish_host_calls()
        built.runner.close()
        with built.run.in_graph():
            runner = self._runner(built.run, built.step.plan)
        self._modes[mode] = dataclasses.replace(built, runner=runner)

    def _runner(self, run: CapturedMode, plan: StepPlan) -> ElementRunner:
        runner = run.runner(plan, interrupted=lambda: self._interrupted(), for_keras=True)
        return cast(ElementRunner, runner)

    def _session(self, run: CapturedMode, scaffold: tf.compat.v1.train.Scaffold) -> GraphSession:
        """A session of a mode whose variables have their first values."""
        variables = run.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        self.store.prepare([v.op for v in variables], replicated=True)
        session = GraphSession(run.graph, self.store)
        without_value = set(session.uninitialized())
        new = [v for v in variables if v.op.name in without_value]
        if len(new) < len(variables):
            scaffold.finalize()
            self._initialize(session, new)
            session.run(scaffold.local_init_op)
            return session
        creator = SessionCreator(
            lambda: session,
            scaffold,
            self._source,
        )
        creator.create_session()
        self._checkpoint = creator.restored
        if new and run.mode != ModeKeys.TRAIN and not creator.restored:
            first_values.warn(run, scaffold)
        return session

    @property
    def _source(self) -> Source:
        """The checkpoint that variables are of, else the newest."""
        return Source(self._checkpoint, self._config.model_dir)

    def _initialize(self, session: GraphSession, variables: Sequence[tf.Variable]) -> None:
        """Variables that a later mode added, such as slots: from the checkpoint where it can."""
        missing = {variable.op.name: variable for variable in variables}

        def restore(path: str) -> None:
            for name in self._take(path, list(missing)):
                del missing[name]

        if missing:
            self._checkpoint = self._source.restore(restore)
        session.run([variable.initializer for variable in missing.values()])

    def _take(self, path: str, names: Iterable[str]) -> list[str]:
        """Takes the values of variables from a checkpoint; the names of those that it has."""
        taken = []
        with diagnosis.reading(path):
            for name, value in read_variables(path, names):
                self.store.assign(name, value)
                taken.append(name)
        return taken

    def follow_checkpoint(self) -> None:
        """Takes over the newest checkpoint that can be read, if someone else wrote one since."""
        path = latest(self._config.model_dir)
        if path is not None and path != self._checkpoint and self._modes:
            self._checkpoint = Source(None, self._config.model_dir).restore(self._take_over)

    def _take_over(self, path: str) -> None:
        if path == self._checkpoint:  # newer ones cannot be read
            return
        logging.info("Taking over newer checkpoint %s", path)
        self._checkpoint = None  # from here on, the variables are of no checkpoint
        self._take(path, self.store)

    def newest_checkpoint(self) -> str | None:
        """The newest checkpoint of model_dir."""
        return latest(self._config.model_dir)

    def flush(self) -> None:
        """Writes out the summaries of host calls of all modes."""
        for mode in self._modes.values():
            mode.flush()

    def save(self) -> str | None:
        """Writes a checkpoint to model_dir; None where nothing was trained."""
        if ModeKeys.TRAIN not in self._modes:
            return None
        mode = self._modes[ModeKeys.TRAIN]
        if not mode.run.writes_files:  # the chief does, and the next training takes its values
            return None
        tf.io.gfile.makedirs(self._config.model_dir)
        with mode.run.in_graph():
            if state := tf.train.get_checkpoint_state(self._config.model_dir):
                mode.scaffold.saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
            self._checkpoint = mode.scaffold.saver.save(
                mode.session,
                f"{self._config.model_dir}/model.ckpt",
                global_step=mode.session.global_step(),
            )
        return self._checkpoint

    def save_to(self, directory: str) -> str:
        """Writes a checkpoint of the values of now to `directory`; returns its path."""
        order = (ModeKeys.PREDICT, ModeKeys.TRAIN, ModeKeys.EVAL)
        mode = next(self._modes[each] for each in order if each in self._modes)
        with mode.run.in_graph():
            path: str = mode.scaffold.saver.save(
                mode.session, f"{directory}/model.ckpt", write_meta_graph=False, write_state=False
            )
        return path

    def features_spec(self) -> Any:
        """The features of a batch of any size: structure of `tf.TypeSpec`s."""
        mode = next(iter(self._modes.values()))
        return feature_keys.original(elements.any_batch(split_element(mode.element_spec)[0]))

    def predict(self, batches: Sequence[Any], build: Build) -> Any:
        """Predictions for a few elements, concatenated; captures PREDICT on first use."""
        features = [split_element(plain_element(batch))[0] for batch in batches]
        if ModeKeys.PREDICT not in self._modes:
            spec = tf.nest.map_structure(elements.spec_of, features[0])
            if not self._topology.compiles:
                spec = elements.any_batch(spec)
            elif self._per_batch > 1:
                spec = elements.shares_of(spec, self._per_batch)
            build(ModeKeys.PREDICT, spec)
            self._predict_function = self._modes[ModeKeys.PREDICT].runner.element_function()
        with with_lines(self._modes[ModeKeys.PREDICT].run.graph):
            outputs = [self._predict_element(each) for each in features]
        flat = [tf.concat(parts, axis=0) for parts in zip(*outputs, strict=True)]
        return self._modes[ModeKeys.PREDICT].packed(flat)

    def _predict_element(self, element: Any) -> list[tf.Tensor]:
        """The predictions for one element; where shapes are fixed, a short one is filled.

        The last batch is dealt to the replicas unevenly: some may get nothing.
        """
        if not self._topology.compiles:
            return self._predict_function(element)
        strategy = self.store.strategy
        specs = tf.nest.flatten(self._modes[ModeKeys.PREDICT].element_spec)
        shares = [spec.shape[0] * self._per_batch for spec in specs]
        parts = [strategy.experimental_local_results(t) for t in tf.nest.flatten(element)]
        if all(p.shape[0] == share for ps, share in zip(parts, shares, strict=True) for p in ps):
            return self._predict_function(element)
        with tf.device("/cpu:0"):
            whole = [tf.concat(of_all, axis=0) for of_all in parts]
            [rows] = {int(tf.shape(t)[0]) for t in whole}
            shared = zip(whole, shares, strict=True)
            full = [elements.filled(t, share, strategy) for t, share in shared]
        element = tf.nest.pack_sequence_as(element, full)
        return [output[:rows] for output in self._predict_function(element)]

    @property
    def _per_batch(self) -> int:
        """The number of replicas that share one of Keras' elements."""
        return self._topology.replicas_per_element or 1

    def predict_one(self, features: Any, build: Build) -> Any:
        """Predictions for one batch of features; every replica makes them, one is heard."""
        replicas = self.store.strategy.num_replicas_in_sync
        return tf.nest.map_structure(
            lambda t: t[: tf.shape(t)[0] // replicas], self.predict([features], build)
        )
