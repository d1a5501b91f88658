"""Embedding tables: one copy, with optimizers of their own; steps take and give rows of them.

`embedding_config_spec` and `tf.tpu.experimental.embedding_column` are implemented here. Tables are
a host stage of the step (`engine/step/host_stage.py`), which is all that the engine knows of them.
`TPUEstimator` uses `plug.py`. Begin with `config.py`, then `capturing.py`.
"""

from tpu_estimator_compat.embedding.config import EmbeddingConfigSpec
from tpu_estimator_compat.embedding.parameters import (
    AdagradParameters,
    AdamParameters,
    FtrlParameters,
    MomentumParameters,
    ProximalAdagradParameters,
    RMSPropParameters,
    StochasticGradientDescentParameters,
)
from tpu_estimator_compat.embedding.tables import FeatureConfig, TableConfig

__all__ = [
    "AdagradParameters",
    "AdamParameters",
    "EmbeddingConfigSpec",
    "FeatureConfig",
    "FtrlParameters",
    "MomentumParameters",
    "ProximalAdagradParameters",
    "RMSPropParameters",
    "StochasticGradientDescentParameters",
    "TableConfig",
]
