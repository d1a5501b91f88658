"""`tf.contrib.training`: hyperparameters, waiting for checkpoints, and tf_slim's loops."""

from __future__ import annotations

from tensorflow.python.training import checkpoint_utils

from tpu_estimator_compat.old_names.contrib import hparams, slim, taken_over

__all__ = taken_over(
    globals(),
    {
        checkpoint_utils: "checkpoints_iterator wait_for_new_checkpoint",
        hparams: "HParams parse_values",
        slim.training: """
            add_gradients_summaries clip_gradient_norms clip_gradient_norms_fn create_train_op
            multiply_gradients train
        """,
        slim.train_eval: """
            StopAfterNEvalsHook SummaryAtEndHook evaluate_once evaluate_repeatedly
            get_or_create_eval_step
        """,
    },
)
