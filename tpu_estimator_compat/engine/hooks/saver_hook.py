"""The CheckpointSaverHook of estimators: also saves the input's position, and syncs event files."""

from __future__ import annotations

import functools
import os
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.checkpoint import input_state
from tpu_estimator_compat.engine.checkpoint.saving import BESIDE, remove_orphans
from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.engine.graph.graph_text import write_text
from tpu_estimator_compat.engine.session.step_session import StepSession

_EVENTS = "events.out.tfevents."


class SaverHook(tf.compat.v1.train.CheckpointSaverHook):
    """Saves every N steps or seconds.

    With `save_input_state` it also saves the input's position, with `save_graph_def` graph.pbtxt
    and .meta. Training waits for the files, as in the original: a hook, a listener, or any other
    code that runs next may read them.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        *,
        save_input_state: bool = False,
        save_graph_def: bool = True,
        **kwargs: Any,
    ):
        super().__init__(checkpoint_dir, **kwargs)
        self._writes_graph = save_graph_def
        self._save_input_state = save_input_state

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._writes_graph:
            path = os.path.join(self._checkpoint_dir, "graph.pbtxt")
            write_text(tf.compat.v1.get_default_graph().as_graph_def(add_shapes=True), path)
        if self._save_input_state:
            input_state.warn_of_stateful_ops(session.iterator())
        self._save_graph_def = False  # it is written
        super().after_create_session(session, coord)

    def _save(self, session: StepSession, step: int) -> bool:
        session.finish_host_calls()  # a restart does not repeat those of earlier steps
        self._summary_writer.flush()
        user_files.sync(_event_files(self._checkpoint_dir))
        beside = vars(self._get_saver())
        if self._save_input_state and session.input.restored_from != self._path(step):
            beside[BESIDE] = functools.partial(input_state.write, session.iterator())
        self._save_graph_def = self._writes_graph
        stop: bool = super()._save(session, step)
        if write := beside.pop(BESIDE, None):  # the saver has a `save` of its own
            write(self._path(step))
        if self._save_input_state:
            remove_orphans(self._checkpoint_dir)
        return stop

    def _path(self, step: int) -> str:
        padded = getattr(self._get_saver(), "_pad_step_number", False)
        return f"{self._save_path}-{step:08d}" if padded else f"{self._save_path}-{step}"


def _event_files(directory: str) -> list[str]:
    """Event files in `directory`; a restart from the checkpoint does not repeat their steps."""
    if not user_files.is_local(directory):
        return []
    directory = user_files.local(directory)
    if not os.path.isdir(directory):
        return []
    paths = [e.path for e in os.scandir(directory) if e.name.startswith(_EVENTS) and e.is_file()]
    return [path for path in paths if os.access(path, os.R_OK)]  # other users may write there
