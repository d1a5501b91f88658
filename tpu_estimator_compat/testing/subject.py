"""A model_fn under test, with arrays for its input."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.config import TPUConfig, TPURunConfig, check_positive_integer
from tpu_estimator_compat.config.arguments import check_params
from tpu_estimator_compat.engine.capture.user_functions import (
    RESERVED_PARAMS_KEYS,
    call_model_fn,
    check_model_fn,
    declared_arguments,
)
from tpu_estimator_compat.estimator.tpu_estimator import TPUEstimator
from tpu_estimator_compat.spec import ModeKeys

ModelFn = Callable[..., Any]
Shapes = dict[str, tuple[int, ...]]
SEED = 1
_AS_TENSORFLOW = {np.dtype("float64"): np.float32, np.dtype("int64"): np.int32}


@dataclasses.dataclass(frozen=True)
class Subject:
    """A model_fn and one global batch of examples, which every step gets.

    Attributes:
      features, labels: arrays, or dicts and tuples of them, with examples along axis 0; no labels
        where None.
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
        check_hyperparameters(self.params)
        if self.own_input_fn is not None:
            if self.features is not None or self.labels is not None:
                raise ValueError("Give features and labels, or input_fn, but not both.")
            check_positive_integer(self.examples_per_step, "batch_size")
            return
        shapes: Shapes = {}
        for name in ("features", "labels"):
            object.__setattr__(self, name, _arrays(name, getattr(self, name), shapes))
        self._check_sizes(shapes)

    def _check_sizes(self, shapes: Shapes) -> None:
        sizes = {shape[:1] for shape in shapes.values()}
        if not shapes or len(sizes) > 1 or sizes & {(), (0,)}:
            raise ValueError(
                "features and labels must be arrays with equally many examples along axis 0, at "
                f"least 1. Got {f'the shapes {shapes}' if shapes else self.features}."
            )
        if self.examples_per_step is not None:
            check_positive_integer(self.examples_per_step, "batch_size")
            [(there,)] = sizes
            if self.examples_per_step > there:
                raise ValueError(
                    f"batch_size={self.examples_per_step}, but there are {there} examples."
                )

    @property
    def batch_size(self) -> int:
        """The number of examples in a step of all replicas."""
        leaves = tf.nest.flatten([self.features, self.labels])
        return self.examples_per_step or next(len(leaf) for leaf in leaves if leaf is not None)

    def input_fn(self, passes: int = 1) -> Callable[..., Any]:
        """`own_input_fn`, or one that repeats the examples: in predictions `passes` times."""

        def input_fn(params: Any, mode: str) -> tf.data.Dataset:
            predicts = mode == ModeKeys.PREDICT
            whole = self.labels is not None and not predicts
            structure = (self.features, self.labels) if whole else self.features
            if isinstance(self.features, tuple) and not whole:
                if not predicts:
                    raise ValueError(
                        "features are a tuple, and there are no labels: an estimator takes the "
                        "tuple for features and labels. Give a dict of features."
                    )
                # Predictions ignore labels.
                structure = (self.features, np.zeros(self.batch_size, np.int32))
            dataset = tf.data.Dataset.from_tensor_slices(structure)
            dataset = dataset.batch(params["batch_size"], drop_remainder=True)
            return dataset.repeat(passes if predicts else None)

        return self.own_input_fn or input_fn

    def estimator(
        self, replicas: int, model_dir: str, model_fn: ModelFn | None = None, **config: Any
    ) -> TPUEstimator:
        """An estimator on `replicas` logical CPUs, with arguments for `RunConfig`.

        `model_fn` takes the place of the subject's own, which it calls.
        """
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
        return TPUEstimator(
            model_fn or self.call,
            config=config,
            params={} if self.params is None else self.params,
            use_tpu=self.use_tpu,
            train_batch_size=self.batch_size,
            eval_batch_size=self.batch_size,
            predict_batch_size=self.batch_size,
            export_to_tpu=False,
        )

    def call(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
        """The result of the model_fn; unlike a TPUEstimator's, it need not take params."""
        offered = {"mode": mode, "params": params, "config": config}
        return call_model_fn(self.model_fn, features, labels, offered)


def check_hyperparameters(params: Any) -> None:
    """Raises TypeError for params that are no dict or HParams, ValueError for reserved names."""
    check_params(params, settable=True)
    if taken := [key for key in RESERVED_PARAMS_KEYS if key in (params or {})]:
        raise ValueError(
            f"{taken} are reserved keys but existed in params {params}. Examples decide the batch "
            "size of testing.run, and the argument batch_size that of testing.batches."
        )


def _arrays(name: str, given: Any, shapes: Shapes) -> Any:
    """The same structure, with arrays of the dtypes that TensorFlow gives; adds to `shapes`."""
    if isinstance(given, dict):
        return {key: _arrays(f"{name}[{key!r}]", value, shapes) for key, value in given.items()}
    if isinstance(given, tuple):
        parts = [_arrays(f"{name}[{i}]", value, shapes) for i, value in enumerate(given)]
        return type(given)(*parts) if hasattr(given, "_fields") else tuple(parts)
    if given is None:
        return None
    try:
        array = np.asarray(given)
    except (ValueError, NotImplementedError) as error:
        raise ValueError(f"{name} must be an array, got {_shown(given)}: {error}") from error
    if array.dtype == object and not all(isinstance(x, str | bytes) for x in array.flat):
        raise TypeError(
            f"{name} must be an array of numbers or text, got {_shown(given)}. Give what a sparse "
            "or ragged tensor consists of, and make the tensor in model_fn."
        )
    shapes[name] = array.shape
    to = array.dtype if hasattr(given, "dtype") else _AS_TENSORFLOW.get(array.dtype, array.dtype)
    return array.astype(to, copy=False)


def _shown(given: Any) -> str:
    return f"{type(given).__name__}: {reprlib.repr(given)}"
