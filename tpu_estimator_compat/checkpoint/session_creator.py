"""Makes a ready session: restored from a checkpoint, or initialised as the scaffold says.

TF's own ChiefSessionCreator and SessionManager do the work; only the session is another one.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
from tensorflow.python.training import monitored_session, session_manager

from tpu_estimator_compat.checkpoint import diagnosis
from tpu_estimator_compat.program.session import GraphSession


class _SessionManager(session_manager.SessionManager):
    """A SessionManager whose sessions run on live TF2 variables."""

    def __init__(self, make_session: Callable[[], GraphSession], **kwargs):
        super().__init__(**kwargs)
        self._make_session = make_session

    def _model_ready(self, sess):
        ready, message = super()._model_ready(sess)
        if ready and (missing := sess.uninitialized()):
            return False, f"Variables not initialized: {', '.join(missing)}"
        return ready, message

    def _restore_checkpoint(
        self,
        master,
        saver=None,
        checkpoint_dir=None,
        checkpoint_filename_with_path=None,
        wait_for_checkpoint=False,
        max_wait_secs=7200,
        config=None,
    ):
        del master, wait_for_checkpoint, max_wait_secs, config
        session = self._make_session()
        state = None
        path = checkpoint_filename_with_path
        if checkpoint_dir and not path:
            state = tf.train.get_checkpoint_state(checkpoint_dir)
            path = state.model_checkpoint_path if state else None
        if not saver or not path:
            return session, False
        with diagnosis.explained(session.graph, saver, path):
            session_manager._restore_checkpoint_and_maybe_run_saved_model_initializers(
                session, saver, path
            )
        if state:
            saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        return session, True


class StepSessionCreator(monitored_session.ChiefSessionCreator):
    """A session creator for MonitoredSession.

    Args:
      make_session: makes the session, once the scaffold has finalised the graph.
      scaffold: the mode's scaffold.
      checkpoint_dir: restore the newest checkpoint from here, if there is one.
      checkpoint_filename_with_path: restore this checkpoint.

    Attributes:
      session: the last session made, ready or not; None before that.
    """

    def __init__(
        self,
        make_session: Callable[[], GraphSession],
        scaffold: tf.compat.v1.train.Scaffold,
        *,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
    ):
        super().__init__(
            scaffold=scaffold,
            checkpoint_dir=checkpoint_dir,
            checkpoint_filename_with_path=checkpoint_filename_with_path,
        )
        self._make_session = make_session
        self.session: GraphSession | None = None

    def create_session(self):
        """A ready session, as TF's own creator makes it."""
        keys = tf.compat.v1.GraphKeys
        for field, key in (
            ("_ready_op", keys.READY_OP),
            ("_ready_for_local_init_op", keys.READY_FOR_LOCAL_INIT_OP),
        ):
            # TF's defaults ask every variable in the graph; the session knows without.
            if getattr(self._scaffold, field) is None and not tf.compat.v1.get_collection(key):
                setattr(self._scaffold, field, tf.constant([], tf.string))
        session = super().create_session()
        session.start()
        return session

    def _remembered(self) -> GraphSession:
        self.session = self._make_session()
        return self.session

    def _get_session_manager(self):
        if self._session_manager is None:
            self._session_manager = _SessionManager(
                self._remembered,
                local_init_op=self._scaffold.local_init_op,
                local_init_feed_dict=self._scaffold.local_init_feed_dict,
                ready_op=self._scaffold.ready_op,
                ready_for_local_init_op=self._scaffold.ready_for_local_init_op,
                graph=tf.compat.v1.get_default_graph(),
            )
        return self._session_manager
