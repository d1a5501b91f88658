"""Embedding tables: one copy, with optimizers of their own; steps take and give rows of them."""

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
