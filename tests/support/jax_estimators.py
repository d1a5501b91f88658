"""Estimators of the same training on JAX's devices and on TensorFlow's replicas."""

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from support.legacy_models import make_estimator

RUNTIMES = ("tensorflow", "jax")


def strategy(replicas: int) -> tf.distribute.Strategy:
    if replicas == 1:
        return tf.distribute.OneDeviceStrategy("/cpu:0")
    return tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(replicas)])


def on(
    runtime: str,
    replicas: int,
    model_dir: Any,
    model_fn: Any = None,
    *,
    tpu_config: dict[str, Any] | None = None,
    **kwargs: Any,
) -> tpu.TPUEstimator:
    """A TPUEstimator of `replicas` replicas; other arguments as for `make_estimator`."""
    fields = {"iterations_per_loop": 5, **(tpu_config or {})}
    if runtime == "jax":
        kwargs["runtime"] = "jax"
        fields["num_shards"] = replicas
    else:
        kwargs["train_distribute"] = kwargs["eval_distribute"] = strategy(replicas)
    config = tpu.TPUConfig(**fields)
    return make_estimator(model_dir, model_fn, use_tpu=True, tpu_config=config, **kwargs)


def variables(estimator: tpu.TPUEstimator) -> dict[str, Any]:
    return {n: estimator.get_variable_value(n) for n in estimator.get_variable_names()}


def assert_near(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, 1e-5, 1e-6, err_msg=name)
