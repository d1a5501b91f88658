"""Makes a ready session: restored from a checkpoint, or initialized by the scaffold.

TensorFlow's ChiefSessionCreator and SessionManager do the work, on a `GraphSession`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.checkpoint import diagnosis, saving
from tpu_estimator_compat.engine.checkpoint.state import CheckpointSource
from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.engine.graph.graph_ops import as_operation
from tpu_estimator_compat.engine.session import initializers
from tpu_estimator_compat.engine.session.graph_session import GraphSession
from tpu_estimator_compat.engine.session.step_session import StepSession
from tpu_estimator_compat.engine.signals import process_exit
from tpu_estimator_compat.tf_internals import ChiefSessionCreator, session_manager

AnySession = TypeVar("AnySession", bound=GraphSession)
_ASKS_VARIABLES = "all_variables_are_ready"  # name of the op that replaces default ready ops


class _SessionManager(session_manager.SessionManager):
    """A SessionManager whose sessions run on live TF2 variables."""

    def __init__(
        self,
        make_session: Callable[[], GraphSession],
        source: CheckpointSource,
        *,
        restore_input: bool,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self._make_session = make_session
        self._source = source
        self._restore_input = restore_input
        self.restored: str | None = None

    def _model_ready_for_local_init(self, sess):
        ready, message = super()._model_ready_for_local_init(sess)
        if ready and _is_default(self._ready_for_local_init_op):
            of_graph = {v.op.name for v in tf.compat.v1.global_variables()}
            if missing := [name for name in sess.uninitialized() if name in of_graph]:
                return False, f"Variables not initialized: {', '.join(missing)}"
        return ready, message

    def _model_ready(self, sess):
        ready, message = super()._model_ready(sess)
        if ready and _is_default(self._ready_op) and (missing := sess.uninitialized()):
            return False, f"Variables not initialized: {', '.join(missing)}"
        return ready, message

    def _restore_checkpoint(self, master, saver=None, **unused_options):
        del master
        session = self._make_session()
        self.restored = None
        source = self._source
        if saver:
            self.restored = source.restore(lambda path: self._restore(session, saver, path))
        if not self.restored:
            initializers.put_in_order(session.graph)
        return session, self.restored is not None

    def _restore(self, session: GraphSession, saver, path: str) -> None:
        with diagnosis.explained(session.graph, saver, path):
            session_manager._restore_checkpoint_and_maybe_run_saved_model_initializers(
                session, saver, user_files.readable(path)
            )
        if not self._restore_input:
            return
        assert isinstance(session, StepSession)
        if reason := session.input.restore(path):
            logging.warning("save_input_state=True, but %s: the input starts anew.", reason)


def _is_default(ready_op: tf.Tensor | tf.Operation) -> bool:
    return as_operation(ready_op).name.startswith(_ASKS_VARIABLES)


class SessionCreator(ChiefSessionCreator, Generic[AnySession]):
    """A session creator for MonitoredSession.

    Args:
      make_session: called once the scaffold has finalised the graph.
      restore_input: whether to restore the input's position as well.

    Attributes:
      session: the last session made, ready or not; None before that.
    """

    def __init__(
        self,
        make_session: Callable[[], AnySession],
        scaffold: tf.compat.v1.train.Scaffold,
        source: CheckpointSource,
        *,
        restore_input: bool = False,
    ):
        super().__init__(scaffold=scaffold)
        self._source = source
        self._make_session = make_session
        self._restore_input = restore_input
        self.session: AnySession | None = None

    @property
    def restored(self) -> str | None:
        return self._session_manager.restored if self._session_manager else None

    def create_session(self):
        keys = tf.compat.v1.GraphKeys
        for field, key in (
            ("_ready_op", keys.READY_OP),
            ("_ready_for_local_init_op", keys.READY_FOR_LOCAL_INIT_OP),
        ):
            # TF's defaults check each variable in the graph; `uninitialized` is faster.
            if getattr(self._scaffold, field) is None and not tf.compat.v1.get_collection(key):
                setattr(self._scaffold, field, tf.constant([], tf.string, name=_ASKS_VARIABLES))
        session = super().create_session()
        if saver := self._scaffold.saver:
            saving.durable(saver)
            if self.restored and self._source.model_dir and not self._source.path:
                saving.recover_last_checkpoints(saver, self._source.model_dir)
        session.start(self.restored)
        return session

    def _remembered(self) -> AnySession:
        self.session = self._make_session()
        return self.session

    def _get_session_manager(self):
        if self._session_manager is None:
            self._session_manager = _SessionManager(
                self._remembered,
                self._source,
                restore_input=self._restore_input,
                local_init_op=self._scaffold.local_init_op,
                local_init_feed_dict=self._scaffold.local_init_feed_dict,
                ready_op=self._scaffold.ready_op,
                ready_for_local_init_op=self._scaffold.ready_for_local_init_op,
                graph=tf.compat.v1.get_default_graph(),
            )
        return self._session_manager


class QueueThreads(tf.compat.v1.train.SessionRunHook):
    """Limits the wait for threads of queue runners: 3 s after a signal; none at Python's exit."""

    def __init__(self, hooks: Sequence[Any]):
        self._hooks = hooks
        self._coord: tf.train.Coordinator | None = None

    def after_create_session(self, session: Any, coord: tf.train.Coordinator) -> None:
        del session
        self._coord, join = coord, coord.join

        def join_soon(*args: Any, stop_grace_period_secs: float = 120, **kwargs: Any) -> None:
            seconds = 3 if self._is_told() else stop_grace_period_secs
            threads = set(coord._registered_threads)
            try:
                join(*args, stop_grace_period_secs=seconds, **kwargs)
            finally:
                if any(thread.is_alive() for thread in threads):
                    process_exit.end_without_waiting()

        coord.join = join_soon

    def stop(self) -> None:
        if self._coord is not None:
            self._coord.request_stop()
            with contextlib.suppress(Exception):  # the error of the hook counts
                self._coord.join(ignore_live_threads=True)

    def _is_told(self) -> bool:
        told = any(getattr(hook, "signalled", False) for hook in self._hooks)
        return told or sys.exc_info()[0] is KeyboardInterrupt


def monitored_session(
    creator: tf.compat.v1.train.SessionCreator, hooks: Sequence[Any]
) -> tf.compat.v1.train.MonitoredSession:
    """A MonitoredSession; if a hook's `after_create_session` fails, no thread of queues remains."""
    threads = QueueThreads(hooks)
    try:  # first of the hooks, so that it knows of the threads before another hook can fail
        return tf.compat.v1.train.MonitoredSession(creator, [threads, *hooks])
    except BaseException:
        threads.stop()
        raise


class Together(contextlib.AbstractContextManager[None]):
    """The context of a MonitoredSession that ends together with those of other workers."""

    def __init__(self, creator: SessionCreator[StepSession]):
        self._creator = creator

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        if self._creator.session is not None:
            runner = self._creator.session.runner
            (runner.leave if kind is None else runner.fail)()
