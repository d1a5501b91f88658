"""`tf.contrib.opt`: the most used optimizers that were dropped with `tf.contrib`."""

from tpu_estimator_compat.old_names.contrib import taken_over
from tpu_estimator_compat.old_names.contrib.opt import (
    adam_variants,
    lars,
    moving_average,
    multitask,
    weight_decay,
)

__all__ = taken_over(
    globals(),
    {
        adam_variants: "AdaMaxOptimizer LazyAdamOptimizer NadamOptimizer",
        lars: "LARSOptimizer",
        moving_average: "MovingAverageOptimizer",
        multitask: "MultitaskOptimizerWrapper clip_gradients_by_global_norm",
        weight_decay: """
            AdamWOptimizer DecoupledWeightDecayExtension MomentumWOptimizer
            extend_with_decoupled_weight_decay
        """,
    },
)
