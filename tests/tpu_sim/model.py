"""The small regression model that the scenarios train, in the legacy style."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat import layers

EXAMPLES, FEATURES, BATCH = 128, 6, 32

_RANDOM = np.random.RandomState(0)
X = _RANDOM.randn(EXAMPLES, FEATURES).astype(np.float32)
Y = X.sum(axis=1, keepdims=True).astype(np.float32)


def dataset(count: int = EXAMPLES) -> tf2.data.Dataset:
    """The first `count` examples: ({"x", "id"}, y)."""
    ids = np.arange(count, dtype=np.int64)
    return tf2.data.Dataset.from_tensor_slices(({"x": X[:count], "id": ids}, Y[:count]))


def train_input(params: dict[str, Any]) -> tf2.data.Dataset:
    """Endless full batches."""
    return _share_of_host(dataset().repeat(), params).batch(
        params["batch_size"], drop_remainder=True
    )


def eval_input(params: dict[str, Any]) -> tf2.data.Dataset:
    """Full batches of all examples."""
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
    """50 examples: the last batch is not full."""
    return dataset(50).batch(params["batch_size"])


def network(features: dict[str, Any]) -> tuple[Any, Any]:
    """Outputs of shape [batch, 1], and the hidden layer, [batch, 8]."""
    hidden = layers.dense(
        features["x"],
        8,
        activation=tf.nn.relu,
        kernel_initializer=tf.glorot_uniform_initializer(seed=1),
    )
    output = layers.dense(hidden, 1, kernel_initializer=tf.glorot_uniform_initializer(seed=2))
    return output, hidden


def mse(labels: Any, output: Any) -> dict[str, Any]:
    """The metric function."""
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
    """The train_op."""
    optimizer = tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.01))
    return optimizer.minimize(loss, tf.train.get_global_step())


@dataclasses.dataclass
class Run:
    """One run of a scenario.

    Attributes:
      on_tpu: whether cores run it; else logical CPUs, or JAX's devices, one per replica.
      cluster: the TPU's resolver; None without one.
      directory: the scenario's own, empty.
      cores_per_replica: cores, or devices of JAX, that share a replica; None for one.
      hosts: machines of the TPU.
      jax_replicas: how many replicas JAX's devices are; None where TensorFlow runs it.
      seen: what is compared: values by name.
    """

    on_tpu: bool
    cluster: Any
    directory: pathlib.Path
    cores_per_replica: int | None = None
    hosts: int = 1
    jax_replicas: int | None = None
    seen: dict[str, Any] = dataclasses.field(default_factory=dict)
    _model: Any = None

    @property
    def on_jax(self) -> bool:
        """Whether JAX's devices run it."""
        return self.jax_replicas is not None

    @property
    def model_dir(self) -> str:
        """The model_dir of the scenario's estimator."""
        return str(self.directory / "model")

    def config(self, tpu_config: dict[str, Any] | None = None, **kwargs: Any) -> tpu.RunConfig:
        """A RunConfig for this run."""
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
        """A TPUEstimator for this run."""
        arguments: dict[str, Any] = {
            "train_batch_size": BATCH,
            "eval_batch_size": BATCH,
            "predict_batch_size": 16,
            **kwargs,
        }
        self._model = model
        config = self.config(tpu_config, **(run_config or {}))
        return tpu.TPUEstimator(model, config=config, use_tpu=True, **arguments)

    def see(self, name: str, value: Any) -> None:
        """Notes a value, to be compared."""
        self.seen[name] = as_json(value)

    def see_variables(self, estimator: tpu.TPUEstimator) -> None:
        """Notes all variables of the newest checkpoint."""
        names = sorted(estimator.get_variable_names())
        self.see("variables", {name: estimator.get_variable_value(name) for name in names})

    def see_files(self) -> None:
        """Notes the files of the model_dir, and the records of its events."""
        root = pathlib.Path(self.model_dir)
        files = sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())
        self.see("files", sorted({f.partition(".tfevents")[0] for f in files}))
        for path in files:
            if ".tfevents" in path:
                name = f"events of {path.partition('.tfevents')[0]}"
                self.seen.setdefault(name, [])
                self.seen[name] += records(root / path)

    def train_evaluate_predict(self, estimator: tpu.TPUEstimator, steps: int = 10, **kwargs: Any):
        """What most scenarios do."""
        estimator.train(train_input, max_steps=steps, **kwargs)
        self.see("evaluation", estimator.evaluate(eval_input, steps=4))
        self.see_predictions(estimator)
        self.see_variables(estimator)
        self.see_files()

    def see_predictions(self, estimator: tpu.TPUEstimator) -> None:
        """Notes the predictions of 50 examples."""
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


def records(path: pathlib.Path) -> list[list[Any]]:
    """[tag, step, value] of an event file's records; no value where time makes it."""
    found = []
    for event in tf.train.summary_iterator(str(path)):
        for value in event.summary.value:
            number: Any = None
            if value.HasField("simple_value") and "/sec" not in value.tag:
                number = value.simple_value
            elif value.HasField("tensor"):
                array = tf2.make_ndarray(value.tensor)
                number = float(array) if array.dtype.kind == "f" and not array.shape else None
            found.append([value.tag, event.step, number])
    return found


def as_json(value: Any) -> Any:
    """Plain numbers, lists and dicts of `value`."""
    if isinstance(value, dict):
        return {str(k): as_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(v) for v in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return np.asarray(value).tolist()
