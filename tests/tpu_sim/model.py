"""The small regression model that the scenarios train, in the legacy style."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat import layers

EXAMPLES, FEATURES, BATCH = 128, 6, 32

SCENARIOS: dict[str, Callable[[Run], None]] = {}
MOVES_TO_HOST: set[str] = set()
"""Scenarios with ops that TensorFlow moves off the cores by itself."""

Modes = tpu.InputPipelineConfig

_RANDOM = np.random.RandomState(0)
X = _RANDOM.randn(EXAMPLES, FEATURES).astype(np.float32)
Y = X.sum(axis=1, keepdims=True).astype(np.float32)


def scenario(function: Callable[[Run], None]) -> Callable[[Run], None]:
    SCENARIOS[function.__name__] = function
    return function


def moved_to_host(function: Callable[[Run], None]) -> Callable[[Run], None]:
    MOVES_TO_HOST.add(function.__name__)
    return function


def dataset(count: int = EXAMPLES) -> tf2.data.Dataset:
    ids = np.arange(count, dtype=np.int64)
    options = tf2.data.Options()
    # The end of an iterator would wait for the next turn of its tuner, up to a minute.
    options.autotune.enabled = False
    found = tf2.data.Dataset.from_tensor_slices(({"x": X[:count], "id": ids}, Y[:count]))
    return found.with_options(options)


def train_input(params: dict[str, Any]) -> tf2.data.Dataset:
    return _share_of_host(dataset().repeat(), params).batch(
        params["batch_size"], drop_remainder=True
    )


def eval_input(params: dict[str, Any]) -> tf2.data.Dataset:
    return _share_of_host(dataset(), params).batch(params["batch_size"], drop_remainder=True)


def _share_of_host(examples: tf2.data.Dataset, params: dict[str, Any]) -> tf2.data.Dataset:
    """What a host is to read, so that all hosts together read what one would."""
    context = params.get("context")
    readers = 1 if context is None else min(context.num_hosts, context.num_replicas)
    if readers == 1 or params["batch_size"] == BATCH:
        return examples
    # Where a replica spans hosts, that of its first core reads.
    reader = context.current_host * readers // context.num_hosts
    blocks = examples.batch(BATCH // readers, drop_remainder=True)
    return blocks.shard(readers, reader).unbatch()


def predict_input(params: dict[str, Any]) -> tf2.data.Dataset:
    return dataset(50).batch(params["batch_size"])


def network(features: dict[str, Any]) -> tuple[Any, Any]:
    hidden = layers.dense(
        features["x"],
        8,
        activation=tf.nn.relu,
        kernel_initializer=tf.glorot_uniform_initializer(seed=1),
    )
    output = layers.dense(hidden, 1, kernel_initializer=tf.glorot_uniform_initializer(seed=2))
    return output, hidden


def mse(labels: Any, output: Any) -> dict[str, Any]:
    return {"mse": tf.metrics.mean_squared_error(labels, output)}


def model_fn(features, labels, mode, params):
    """The model_fn without anything special."""
    return spec_of(features, labels, mode)


def spec_of(
    features: Any,
    labels: Any,
    mode: str,
    change: Callable[[Any, Any], Any] | None = None,
    minimize: Callable[[Any], Any] | None = None,
    **fields: Any,
) -> Any:
    """A spec of the model.

    Args:
      features: of the model_fn.
      labels: of the model_fn.
      mode: of the model_fn.
      change: takes output and hidden layer, returns another output; not in PREDICT.
      minimize: takes the loss, returns the train_op; None for Adam.
      **fields: more fields of the spec in TRAIN.
    """
    output, hidden = network(features)
    if mode == tpu.ModeKeys.PREDICT:
        predictions = {"y": output, "id": tf.identity(features["id"])}
        return tpu.TPUEstimatorSpec(mode, predictions=predictions)
    if change is not None:
        output = change(output, hidden)
    loss = tf.losses.mean_squared_error(labels, output)
    if mode == tpu.ModeKeys.EVAL:
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(mse, [labels, output]))
    train_op = adam(loss) if minimize is None else minimize(loss)
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, **fields)


def adam(loss: Any) -> Any:
    optimizer = tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.01))
    return optimizer.minimize(loss, tf.train.get_global_step())


def changed(change: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda features, labels, mode, params: spec_of(features, labels, mode, change)


def minimized(minimize: Callable[[Any], Any]) -> Callable[..., Any]:
    """A model_fn whose train_op is `minimize(loss)`."""

    return lambda features, labels, mode, params: spec_of(features, labels, mode, minimize=minimize)


@dataclasses.dataclass
class Run:
    """One run of a scenario.

    Attributes:
      on_tpu: whether cores run it; else logical CPUs, or JAX's devices, one per replica.
      cluster: the TPU's resolver; None without one.
      model_dir: the directory of the scenario's estimator, which has another to itself.
      see: notes what is compared: a name and a value.
      cores_per_replica: cores, or devices of JAX, that share a replica; None for one.
      hosts: machines of the TPU.
      jax_replicas: how many replicas JAX's devices are; None where TensorFlow runs it.
    """

    on_tpu: bool
    cluster: Any
    model_dir: str
    see: Callable[[str, Any], None]
    cores_per_replica: int | None = None
    hosts: int = 1
    jax_replicas: int | None = None
    _model: Any = None

    @property
    def on_jax(self) -> bool:
        return self.jax_replicas is not None

    def config(self, tpu_config: dict[str, Any] | None = None, **kwargs: Any) -> tpu.RunConfig:
        given: dict[str, Any] = {"iterations_per_loop": 5, **(tpu_config or {})}
        if self.cores_per_replica:
            given["num_cores_per_replica"] = self.cores_per_replica
        if self.cores_per_replica or self.hosts > 1:
            # As the original demands of replicas that share cores, and for evaluation on a pod.
            given.setdefault("per_host_input_for_training", tpu.InputPipelineConfig.PER_HOST_V2)
        arguments: dict[str, Any] = {
            "model_dir": self.model_dir,
            "tf_random_seed": 3,
            "save_checkpoints_steps": 10,
            **kwargs,
        }
        if self.on_tpu:
            arguments["cluster"] = self.cluster
        if self.on_jax:
            arguments["runtime"] = "jax"
            given["num_shards"] = self.jax_replicas
        return tpu.RunConfig(tpu_config=tpu.TPUConfig(**given), **arguments)

    def estimator(
        self,
        model: Any = model_fn,
        tpu_config: dict[str, Any] | None = None,
        run_config: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> tpu.TPUEstimator:
        arguments: dict[str, Any] = {
            "train_batch_size": BATCH,
            "eval_batch_size": BATCH,
            "predict_batch_size": 16,
            **kwargs,
        }
        self._model = model
        config = self.config(tpu_config, **(run_config or {}))
        return tpu.TPUEstimator(model, config=config, use_tpu=True, **arguments)

    def train_evaluate_predict(self, estimator: tpu.TPUEstimator, steps: int = 10, **kwargs: Any):
        """What most scenarios do."""
        estimator.train(train_input, max_steps=steps, **kwargs)
        self.see("evaluation", estimator.evaluate(eval_input, steps=4))
        self.see_predictions(estimator)

    def see_predictions(self, estimator: tpu.TPUEstimator) -> None:
        if (
            self.on_tpu and self.hosts > 1 and not self.cores_per_replica
        ):  # the only mode in which a pod predicts
            broadcast = tpu.InputPipelineConfig.BROADCAST
            estimator = self.estimator(
                self._model, tpu_config={"per_host_input_for_training": broadcast}
            )
        found = list(estimator.predict(predict_input))
        assert [int(p["id"]) for p in found] == list(range(50))
        self.see("predictions", [float(p["y"][0]) for p in found])
