"""A CheckpointSaverHook that writes checkpoints while training goes on.

It takes a snapshot that a thread writes. The next save and the end of training wait for the thread.
With listeners, which expect a finished file, the hook writes without a thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging
from tensorflow.core.util.event_pb2 import SessionLog

from tpu_estimator_compat.engine.checkpoint import input_state
from tpu_estimator_compat.engine.checkpoint.input_state import InputState
from tpu_estimator_compat.engine.checkpoint.writing import SaveFunctions, Snapshot, available_memory
from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.engine.graph.graph_text import write_text
from tpu_estimator_compat.engine.session.step_session import StepSession

_EVENTS = "events.out.tfevents."
_SHARE = 0.5  # of the available memory, for the snapshot that a thread writes


class SaverHook(tf.compat.v1.train.CheckpointSaverHook):
    """Saves every N steps or seconds, in the background.

    It writes in the foreground at the start and the end of training, with listeners, a host stage
    or a saver of another class or format, and if a checkpoint exceeds half of the available memory.
    With `save_input_state` it also saves the input's position, with `save_graph_def` graph.pbtxt
    and .meta.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        *,
        save_input_state: bool = False,
        save_graph_def: bool = True,
        **kwargs: Any,
    ):
        super().__init__(checkpoint_dir, save_graph_def=False, **kwargs)
        self._writes_graph = save_graph_def
        self._save_input_state = save_input_state
        self._functions: SaveFunctions | None = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._in_steps = False

    def after_create_session(self, session: Any, coord: Any) -> None:
        input_state.remove_orphans(self._checkpoint_dir)
        self._functions = None
        self._in_steps = False
        if self._writes_graph:
            path = os.path.join(self._checkpoint_dir, "graph.pbtxt")
            write_text(tf.compat.v1.get_default_graph().as_graph_def(add_shapes=True), path)
        super().after_create_session(session, coord)
        self._in_steps = True

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Saves when due, and raises the error of the last write."""
        if self._thread is not None and not self._thread.is_alive():
            self.wait()
        super().after_run(run_context, run_values)

    def end(self, session: Any) -> None:
        self.wait()
        self._in_steps = False
        super().end(session)

    def wait(self) -> None:
        """Waits for the write in the thread, and raises its error."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _save(self, session: StepSession, step: int) -> bool:
        self.wait()
        session.finish_host_calls()  # a restart does not repeat those of earlier steps
        logging.info("Calling checkpoint listeners before saving checkpoint %d...", step)
        for listener in self._listeners:
            listener.before_save(session, step)
        logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        background = self._in_steps and not self._listeners and self._fits(session)
        source = self._functions.snapshot() if background and self._functions else session
        self._summary_writer.flush()
        write = self._writer(source, step, self._state_of_input(session, step))
        if background:
            self._start(write)
        else:
            write()
        # Events and log lines have the original's order, even while the thread is writing.
        log = SessionLog(status=SessionLog.CHECKPOINT, checkpoint_path=self._save_path)
        self._summary_writer.add_session_log(log, step)
        logging.info("Calling checkpoint listeners after saving checkpoint %d...", step)
        return self._told_to_stop(session, step)

    def _told_to_stop(self, session: StepSession, step: int) -> bool:
        stop = False
        for listener in self._listeners:
            if listener.after_save(session, step):
                logging.info(
                    "A CheckpointSaverListener requested that training be stopped. listener: %s",
                    listener,
                )
                stop = True
        return stop

    def _start(self, write: Callable[[], None]) -> None:
        def run() -> None:
            try:
                write()
            except BaseException as error:  # raised again by `wait`
                self._error = error

        self._thread = threading.Thread(target=run, name="checkpoint")
        self._thread.start()

    def _fits(self, session: StepSession) -> bool:
        """Whether memory can hold this checkpoint while training goes on."""
        if session.runner.plan.host_stage:
            return False  # a sparse update would copy all of a variable in the snapshot
        saver = self._get_saver()
        if type(saver) is not tf.compat.v1.train.Saver or saver._is_empty:
            return False  # another class may use the session in any way
        if saver.saver_def.version != tf.compat.v1.train.SaverDef.V2:
            return False
        if self._functions is None:
            self._functions = SaveFunctions(session.graph, session.store, saver.saver_def)
        return self._functions.bytes <= _SHARE * available_memory()

    def _state_of_input(self, session: StepSession, step: int) -> InputState | None:
        if not self._save_input_state:
            return None
        if not self._in_steps:
            input_state.warn_of_stateful_ops(session.iterator())
        if session.input.restored_from == self._path(step):
            return None  # the saved position is still valid
        return InputState(session.iterator())

    def _path(self, step: int) -> str:
        padded = getattr(self._get_saver(), "_pad_step_number", False)
        return f"{self._save_path}-{step:08d}" if padded else f"{self._save_path}-{step}"

    def _writer(
        self, source: StepSession | Snapshot, step: int, state: InputState | None
    ) -> Callable[[], None]:
        """A function that writes a checkpoint, now or later in a thread."""
        graph = tf.compat.v1.get_default_graph()

        def write() -> None:
            user_files.sync(_event_files(self._checkpoint_dir))
            if state is not None:
                state.write(self._path(step))  # first: a visible checkpoint must be complete
            with graph.as_default():
                self._get_saver().save(
                    source,
                    self._save_path,
                    global_step=step,
                    write_meta_graph=self._writes_graph,
                )
            if self._save_input_state:
                input_state.remove_orphans(self._checkpoint_dir)

        return write


def _event_files(directory: str) -> list[str]:
    """Event files in `directory`; a restart from the checkpoint does not repeat their steps."""
    if not user_files.is_local(directory):
        return []
    directory = user_files.local(directory)
    if not os.path.isdir(directory):
        return []
    paths = [e.path for e in os.scandir(directory) if e.name.startswith(_EVENTS) and e.is_file()]
    return [path for path in paths if os.access(path, os.R_OK)]  # other users may write there
