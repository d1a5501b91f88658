"""The modes of one model on one set of variables, owned by a `keras.Model`.

A model that is used through Keras captures each mode on first use, and reads a checkpoint that is
newer than its variables. The model of an `Estimator.train`, `evaluate` or `predict` call begins
with the call's mode, whose session restores and saves; a callback may use other modes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.checkpoint import diagnosis, saving
from tpu_estimator_compat.engine.checkpoint.state import (
    CheckpointSource,
    latest,
    named,
    read_variables,
)
from tpu_estimator_compat.engine.hooks import keras_callbacks
from tpu_estimator_compat.engine.modes import preparation, runtimes
from tpu_estimator_compat.engine.modes.plans import plan_without_hooks
from tpu_estimator_compat.engine.modes.ready_mode import ReadyMode, make_ready, warn_if_untrained
from tpu_estimator_compat.engine.modes.rules import Rules
from tpu_estimator_compat.engine.session.graph_session import GraphSession
from tpu_estimator_compat.engine.session.session_creator import SessionCreator
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.spec import ModeKeys, SummaryWritersHook, WarmStartSettings

GraphKeys = tf.compat.v1.GraphKeys


class Model(keras_callbacks.Model, Protocol):
    """The part of a call's `keras.Model` that session loops use."""

    modes: ModelModes


class ModelModes:
    """The modes of one model by `ModeKeys` value.

    Args:
      rules: of the estimator; modes that are captured later follow them, too.
      warm_start: the source of initial values if there is no checkpoint.

    Attributes:
      in_session: the mode of the running estimator call, whose session restores and saves; None
        for a model that Keras uses.
    """

    def __init__(
        self,
        rules: Rules,
        topology: Topology,
        warm_start: WarmStartSettings | None,
    ):
        self.store = runtimes.new_store(topology)
        self.topology = topology
        self.config = rules.config
        self.in_session: str | None = None
        self.rules = rules
        self._warm_start = warm_start
        self._modes: dict[str, ReadyMode] = {}
        self._writers: list[tuple[SummaryWritersHook, ReadyMode]] = []
        self._interrupted: Callable[[], bool] = lambda: False
        self._checkpoint: str | None = None

    def __contains__(self, mode: str) -> bool:
        return mode in self._modes

    def __getitem__(self, mode: str) -> ReadyMode:
        return self._modes[mode]

    @contextlib.contextmanager
    def ending_early(self, interrupted: Callable[[], bool]) -> Iterator[None]:
        """Ends long loops of steps within once `interrupted` returns True."""
        before, self._interrupted = self._interrupted, interrupted
        try:
            yield
        finally:
            self._interrupted = before

    def drive(self, mode: ReadyMode) -> None:
        """Makes `mode`, captured on this model's store, the mode of the running estimator call."""
        self.in_session = mode.captured.mode
        self._modes[self.in_session] = mode

    def build(self, mode: str, element_spec: Any) -> ReadyMode:
        """Captures `mode`, creates its new variables, and initializes or restores them."""
        if self.in_session and not self.is_alone:
            raise NotImplementedError(
                f"A callback asks for {mode} steps during a call on several machines: the machines "
                "would wait for each other. Call evaluate or predict of the estimator, between "
                "trainings or by train_and_evaluate."
            )
        # Keras makes last batches of other sizes: shapes must be static only for a compiler.
        captured = preparation.capture_on_placeholders(
            self.rules,
            self.rules.input_mode(mode, self.topology),
            element_spec,
            self.store,
            check_shapes=self.topology.compiles,
        )
        with captured.in_graph():
            captured.start(self._warm_start)
            ready = make_ready(captured, *plan_without_hooks(captured))
            writers = SummaryWritersHook()
            writers.begin()
            session = ready.keras_session(lambda: self._interrupted())
            self._give_values(ready, session)
            writers.after_create_session(session, None)
        self._writers.append((writers, ready))
        self._modes[mode] = ready
        return ready

    def _give_values(self, mode: ReadyMode, session: GraphSession) -> None:
        variables = mode.captured.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        self.store.prepare([v.op for v in variables], replicated=True)
        without_value = set(session.uninitialized())
        new = [v for v in variables if v.op.name in without_value]
        if len(new) < len(variables):
            mode.scaffold.finalize()
            self._initialize(session, new)
            session.run(mode.scaffold.local_init_op)
            return
        creator = SessionCreator(lambda: session, mode.scaffold, self._source)
        creator.create_session()
        self._checkpoint = creator.restored
        if new and mode.captured.mode != ModeKeys.TRAIN and not creator.restored:
            warn_if_untrained(mode.captured, mode.scaffold)

    @property
    def _source(self) -> CheckpointSource:
        return CheckpointSource(self._checkpoint, self.config.model_dir)

    def _initialize(self, session: GraphSession, variables: Sequence[tf.Variable]) -> None:
        """Initializes variables that a later mode added, such as slots, or restores them."""
        missing = {variable.op.name: variable for variable in variables}

        def restore(path: str) -> None:
            for name in self._take(path, list(missing)):
                del missing[name]

        if missing:
            self._checkpoint = self._source.restore(restore)
        session.run([variable.initializer for variable in missing.values()])

    def _take(self, path: str, names: Iterable[str]) -> list[str]:
        """Assigns the variables of `names` that a checkpoint has; returns their names."""
        taken = []
        with diagnosis.reading(path):
            for name, value in read_variables(path, names):
                self.store.assign(name, value)
                taken.append(name)
        return taken

    def follow_checkpoint(self) -> None:
        """Takes over the newest readable checkpoint, if another process wrote one since."""
        path = None if self.in_session else latest(self.config.model_dir)
        if path is not None and path != self._checkpoint and self._modes:
            newest = CheckpointSource(None, self.config.model_dir)
            self._checkpoint = newest.restore(self._take_over)

    def _take_over(self, path: str) -> None:
        if path == self._checkpoint:  # newer checkpoints cannot be read
            return
        logging.info("Taking over newer checkpoint %s", path)
        self._checkpoint = None  # partly assigned, the variables belong to no checkpoint
        self._take(path, self.store)

    def flush(self) -> None:
        """Writes the summaries of all modes that Keras runs."""
        for writers, mode in self._writers:
            with mode.captured.in_graph():
                writers.end(mode.ready_session)

    def save(self) -> str | None:
        """Writes a checkpoint to model_dir; returns its path, or None where nothing was written."""
        if ModeKeys.TRAIN not in self._modes:
            return None
        mode = self._modes[ModeKeys.TRAIN]
        if not mode.captured.writes_files:  # the next training restores the chief's
            return None
        tf.io.gfile.makedirs(self.config.model_dir)
        with mode.captured.in_graph():
            saver = saving.durable(mode.scaffold.saver)
            if named(self.config.model_dir):
                saving.recover_last_checkpoints(saver, self.config.model_dir)
            self._checkpoint = saver.save(
                mode.session,
                f"{self.config.model_dir}/model.ckpt",
                global_step=mode.ready_session.global_step(),
            )
        return self._checkpoint

    def save_to(self, directory: str) -> str:
        """Writes a checkpoint of the current values to `directory`; returns its path."""
        order = (ModeKeys.PREDICT, ModeKeys.TRAIN, ModeKeys.EVAL)
        mode = next(self._modes[each] for each in order if each in self._modes)
        with mode.captured.in_graph():
            path: str = mode.scaffold.saver.save(
                mode.session, f"{directory}/model.ckpt", write_meta_graph=False, write_state=False
            )
        return path

    @property
    def is_alone(self) -> bool:
        """Whether no other machine runs steps of this model."""
        return self.topology.workers is None

    @property
    def replicas_per_element(self) -> int:
        return self.topology.replicas_per_element or 1

    def first(self) -> ReadyMode:
        return next(iter(self._modes.values()))
