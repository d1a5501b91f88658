"""The estimator's own hook for a loss that is NaN."""

from typing import Any

import tensorflow as tf


class LossNanHook(tf.compat.v1.train.NanTensorHook):
    """Raises at a NaN in the loss, with a note on the step; the inner loop ends there by itself."""

    def after_run(self, run_context: Any, run_values: Any) -> None:
        try:
            super().after_run(run_context, run_values)
        except tf.compat.v1.train.NanLossDuringTrainingError as error:
            error.add_note(
                f"The loss of step {run_context.session.global_step()} is NaN. A checkpoint of "
                "that step has NaN in its variables: go on from an earlier one. Lower the learning "
                "rate, clip gradients, or find the first NaN with tf.debugging.check_numerics in "
                "model_fn."
            )
            raise
