"""`tf.contrib.opt`: the optimizers of TensorFlow 1 that went with `tf.contrib`, those most used."""

from tpu_estimator_compat.old_names.contrib.opt.adam_variants import (
    AdaMaxOptimizer,
    LazyAdamOptimizer,
    NadamOptimizer,
)
from tpu_estimator_compat.old_names.contrib.opt.lars import LARSOptimizer
from tpu_estimator_compat.old_names.contrib.opt.moving_average import MovingAverageOptimizer
from tpu_estimator_compat.old_names.contrib.opt.multitask import (
    MultitaskOptimizerWrapper,
    clip_gradients_by_global_norm,
)
from tpu_estimator_compat.old_names.contrib.opt.weight_decay import (
    AdamWOptimizer,
    DecoupledWeightDecayExtension,
    MomentumWOptimizer,
    extend_with_decoupled_weight_decay,
)

__all__ = [
    "AdaMaxOptimizer",
    "AdamWOptimizer",
    "DecoupledWeightDecayExtension",
    "LARSOptimizer",
    "LazyAdamOptimizer",
    "MomentumWOptimizer",
    "MovingAverageOptimizer",
    "MultitaskOptimizerWrapper",
    "NadamOptimizer",
    "clip_gradients_by_global_norm",
    "extend_with_decoupled_weight_decay",
]
