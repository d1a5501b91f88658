"""`tf.contrib.opt`: the most used optimizers that were dropped with `tf.contrib`."""

from tpu_estimator_compat.old_names.contrib import taken_over
from tpu_estimator_compat.old_names.contrib.opt import rules, weight_decay, wrappers

__all__ = taken_over(
    globals(),
    {
        rules: "AdaMaxOptimizer LARSOptimizer LazyAdamOptimizer NadamOptimizer",
        weight_decay: """
            AdamWOptimizer DecoupledWeightDecayExtension MomentumWOptimizer
            extend_with_decoupled_weight_decay
        """,
        wrappers: """
            MovingAverageOptimizer MultitaskOptimizerWrapper clip_gradients_by_global_norm
        """,
    },
)
