"""A model_fn under test, with arrays for its input."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.config import TPUConfig, TPURunConfig, check_positive_integer
from tpu_estimator_compat.engine.capture.user_functions import (
    RESERVED_PARAMS_KEYS,
    call_model_fn,
    check_model_fn,
    declared_arguments,
)
from tpu_estimator_compat.estimator.tpu_estimator import TPUEstimator
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.testing import devices

ModelFn = Callable[..., Any]
SEED = 1
_AS_TENSORFLOW = {np.dtype("float64"): np.float32, np.dtype("int64"): np.int32}


@dataclasses.dataclass(frozen=True)
class Subject:
    """A model_fn and one global batch of examples, which every step gets.

    Attributes:
      features, labels: arrays, or dicts and tuples of them, with examples along axis 0; no labels
        where None.
      params: hyperparameters; None for none.
      use_tpu: whether TPU rules hold, as for `TPUEstimator`.
      seed: of TensorFlow's random operations.
      runtime: as for `RunConfig`.
      examples_per_step: the size of the global batch; None for all examples.
      own_input_fn: takes the place of the arrays, which are None then.
      save_input_state: whether a checkpoint has the position of the input, too.
    """

    model_fn: ModelFn
    features: Any
    labels: Any = None
    params: Any = None
    use_tpu: bool = True
    seed: int | None = SEED
    runtime: str = "tensorflow"
    examples_per_step: int | None = None
    own_input_fn: Callable[..., Any] | None = None
    save_input_state: bool = False

    def __post_init__(self) -> None:
        takes = callable(self.model_fn) and declared_arguments(self.model_fn, {"params": None})
        check_model_fn(self.model_fn, {} if takes and self.params is None else self.params)
        if taken := [key for key in RESERVED_PARAMS_KEYS if key in (self.params or {})]:
            raise ValueError(
                f"{taken} are reserved keys but existed in params {self.params}. The batch size is "
                "the number of examples in the arrays."
            )
        if self.own_input_fn is not None:
            check_positive_integer(self.examples_per_step, "batch_size")
            return
        object.__setattr__(self, "features", _arrays(self.features))
        object.__setattr__(self, "labels", _arrays(self.labels))
        self._check_sizes()

    def _check_sizes(self) -> None:
        sizes = {name: _size(leaf) for name, leaf in self._named_arrays()}
        if (
            not sizes
            or None in sizes.values()
            or len(set(sizes.values())) > 1
            or 0 in sizes.values()
        ):
            raise ValueError(
                "features and labels must be arrays with as many examples each along axis 0, one "
                f"at least. Got {sizes or self.features}."
            )

    def _named_arrays(self) -> Iterator[tuple[str, Any]]:
        yield from _leaves("features", self.features)
        yield from _leaves("labels", self.labels)

    @property
    def batch_size(self) -> int:
        """The number of examples in a step of all replicas."""
        return self.examples_per_step or int(_size(next(self._named_arrays())[1]) or 0)

    def input_fn(self, passes: int = 1) -> Callable[..., Any]:
        """The input: without an end, but in predictions, which take `passes` over the examples."""

        def input_fn(params: Any, mode: str) -> tf.data.Dataset:
            predicts = mode == ModeKeys.PREDICT
            whole = self.labels is not None and not predicts
            structure = (self.features, self.labels) if whole else self.features
            dataset = tf.data.Dataset.from_tensor_slices(structure)
            dataset = dataset.batch(params["batch_size"], drop_remainder=True)
            return dataset.repeat(passes if predicts else None)

        return self.own_input_fn or input_fn

    def estimator(
        self, replicas: int, model_dir: str, model_fn: ModelFn | None = None, **config: Any
    ) -> TPUEstimator:
        """An estimator on `replicas` logical CPUs of this process.

        Args:
          model_fn: takes the place of the subject's own, which it calls.
          **config: arguments of `RunConfig`.

        Raises:
          ValueError: several replicas without TPU rules.
          RuntimeError: this process has too few logical CPUs.
        """
        devices.require(replicas)
        if replicas > 1 and not self.use_tpu:
            raise ValueError(f"use_tpu=False runs on one device, but replicas={replicas}.")
        shards = replicas if self.use_tpu else None
        run_config = TPURunConfig(
            model_dir=model_dir,
            tf_random_seed=self.seed,
            runtime=self.runtime,
            save_summary_steps=1,
            log_step_count_steps=None,
            save_input_state=self.save_input_state,
            tpu_config=TPUConfig(iterations_per_loop=1, num_shards=shards),
            **{"save_checkpoints_steps": None, "save_checkpoints_secs": None, **config},
        )
        return self.on(run_config, model_fn)

    def on(self, config: TPURunConfig, model_fn: ModelFn | None = None) -> TPUEstimator:
        """An estimator with a configuration of its own."""
        return TPUEstimator(
            model_fn or self.call,
            config=config,
            params=self.params,
            use_tpu=self.use_tpu,
            train_batch_size=self.batch_size,
            eval_batch_size=self.batch_size,
            predict_batch_size=self.batch_size,
            export_to_tpu=False,
        )

    def call(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
        """The result of the model_fn, which need not take params, as a TPUEstimator's must."""
        offered = {"mode": mode, "params": params, "config": config}
        return call_model_fn(self.model_fn, features, labels, offered)


def _arrays(given: Any) -> Any:
    """The same structure of dicts and tuples, of arrays with the dtypes that TensorFlow gives."""
    if isinstance(given, dict):
        return {key: _arrays(value) for key, value in given.items()}
    if isinstance(given, tuple):
        parts = [_arrays(value) for value in given]
        return type(given)(*parts) if hasattr(given, "_fields") else tuple(parts)
    if given is None or hasattr(given, "dtype"):
        return given
    array = np.asarray(given)
    return array.astype(_AS_TENSORFLOW.get(array.dtype, array.dtype))


def _leaves(name: str, structure: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(structure, dict):
        items = [(f"{name}[{key!r}]", value) for key, value in structure.items()]
    elif isinstance(structure, tuple):
        items = [(f"{name}[{i}]", value) for i, value in enumerate(structure)]
    else:
        if structure is not None:
            yield name, structure
        return
    for inner, value in items:
        yield from _leaves(inner, value)


def _size(leaf: Any) -> int | None:
    """The number of examples; None for a scalar."""
    return leaf.shape[0] if len(leaf.shape) else None
