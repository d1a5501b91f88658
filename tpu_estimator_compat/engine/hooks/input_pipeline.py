"""`tf.data.experimental.CheckpointInputPipelineHook`: saves positions of iterators."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.checkpoint import saving as checkpoint_saving
from tpu_estimator_compat.engine.checkpoint import state
from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.tf_internals import _convert_external_state_policy_to_enum, iterator_ops


class _IteratorSaver(tf.compat.v1.train.Saver):
    """A saver that lists its checkpoints in a file of its own."""

    def __init__(self, saveables: list[Any], state_file: str):
        super().__init__(saveables, sharded=True)
        self._state_file = state_file

    def save(self, sess, save_path, global_step=None, latest_filename=None, *args, **kwargs):
        latest = latest_filename or self._state_file
        return checkpoint_saving.save(self, sess, save_path, global_step, latest, *args, **kwargs)


class CheckpointInputPipelineHook(tf.compat.v1.train.SessionRunHook):
    """Saves and restores the positions of all iterators of the graph together with the model.

    The checkpoints `input.ckpt-*` are beside the model's, and the file `checkpoint_input` lists
    them. Each of several workers has its own, `input_<task_type>_<task_id>.ckpt-*`.

    Args:
      estimator: gives `model_dir` and the times of checkpoints.
      external_state_policy: the action where elements depend on state that cannot be saved, such as
        that of random ops: "fail" (the default), "warn" or "ignore".

    Raises:
      ValueError: another `external_state_policy`, or an estimator that saves no checkpoints.
    """

    def __init__(self, estimator: Any, external_state_policy: str | None = None):
        self._policy = _convert_external_state_policy_to_enum(external_state_policy or "fail")
        config = estimator.config
        prefix = "input"
        if config.num_worker_replicas > 1:
            prefix += f"_{config.task_type}_{config.task_id}"
        self._state_file = f"checkpoint_{prefix}"
        # Not a subclass of CheckpointSaverHook: with one, the estimator would not save the model.
        self._saving = tf.compat.v1.train.CheckpointSaverHook(
            estimator.model_dir,
            save_secs=config.save_checkpoints_secs,
            save_steps=config.save_checkpoints_steps,
            checkpoint_basename=f"{prefix}.ckpt",
        )
        self._is_new = True

    def begin(self) -> None:
        iterators = tf.compat.v1.get_collection(iterator_ops.GLOBAL_ITERATORS)
        self._saving._saver = _IteratorSaver(
            [iterator_ops._IteratorSaveable(i, i.name, self._policy) for i in iterators],
            self._state_file,
        )
        self._saving.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        del session, coord
        self._is_new = True

    def before_run(self, run_context: Any) -> Any:
        if self._is_new:  # other hooks have initialized the iterators
            self._restore_or_save(run_context.session)
            self._is_new = False
        return self._saving.before_run(run_context)

    def _restore_or_save(self, session: Any) -> None:
        saving = self._saving
        newest = next(iter(state.candidates(saving._checkpoint_dir, self._state_file)), None)
        if newest:
            saving._saver.restore(session, user_files.readable(newest))
            return
        step = session.run(saving._global_step_tensor)
        saving._save(session, step)
        saving._timer.update_last_triggered_step(step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._saving.after_run(run_context, run_values)

    def end(self, session: Any) -> None:
        self._saving.end(session)
