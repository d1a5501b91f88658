"""Embedding tables with their own optimizers; each step looks rows up and updates them on the host.

This door implements `embedding_config_spec` and `tf.tpu.experimental.embedding_column`. The engine
sees tables only as a host stage of the step (`engine/step/host_stage.py`). Begin with `config.py`,
then `capturing.py`.
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
