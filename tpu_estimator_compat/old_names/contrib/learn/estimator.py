"""`tf.contrib.learn.Estimator`: the calls of 2016, made to an Estimator of `tf.estimator`."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.config import RunConfig as _AnyRunConfig
from tpu_estimator_compat.engine.checkpoint import latest
from tpu_estimator_compat.estimator import Estimator as _CoreEstimator
from tpu_estimator_compat.estimator import EstimatorSpec
from tpu_estimator_compat.estimator import inputs as core_inputs
from tpu_estimator_compat.old_names.contrib.learn import arrays, calling, serving, signatures
from tpu_estimator_compat.old_names.contrib.learn.keys import ModeKeys
from tpu_estimator_compat.old_names.contrib.learn.monitors import replace_monitors_with_hooks
from tpu_estimator_compat.old_names.contrib.learn.run_config import RunConfig
from tpu_estimator_compat.old_names.contrib.learn.sk_compat import SKCompat

InputFn = Callable[[], Any]
Metrics = Mapping[Any, Any]


class NotFittedError(ValueError, AttributeError):
    """An estimator is asked for what only training can give."""


class Evaluable:
    """The interface of estimators that can be evaluated."""


class Trainable:
    """The interface of estimators that can be trained."""


class _Engine(_CoreEstimator):
    """The estimator that runs steps, with another model_fn for some calls."""

    def with_model_fn(self, model_fn: Callable[..., Any]) -> _Engine:
        """A copy with another model_fn, in the same model_dir."""
        other = copy.copy(self)
        other._model_fn = model_fn
        return other


class BaseEstimator(Evaluable, Trainable):
    """The common base of estimators of `tf.contrib.learn`.

    Args:
      model_dir: of checkpoints and events; None for the config's, or a temporary one.
      config: a `RunConfig`; None for defaults.

    Raises:
      ValueError: `model_dir` is not the config's.
    """

    def __init__(self, model_dir: str | None = None, config: _AnyRunConfig | None = None):
        if config is None:
            config = RunConfig()
            tf.logging.info("Using default config.")
        self._engine = _Engine(self._training_spec, model_dir, config)
        self._features_signature: signatures.Signature = None
        self._labels_signature: signatures.Signature = None

    @property
    def model_dir(self) -> str:
        """Directory of checkpoints and events."""
        return self._engine.model_dir

    @property
    def config(self) -> _AnyRunConfig:
        """A deep copy of the configuration."""
        return self._engine.config

    def get_variable_names(self) -> list[str]:
        """Names of all variables in the newest checkpoint."""
        return self._engine.get_variable_names()

    def get_variable_value(self, name: str) -> np.ndarray:
        """Value of a variable in the newest checkpoint."""
        return self._engine.get_variable_value(name)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: InputFn | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        monitors: Sequence[Any] | None = None,
        max_steps: int | None = None,
    ) -> BaseEstimator:
        """Trains.

        Args:
          x: features [examples, ...], or an iterator; in place of `input_fn`.
          y: labels, likewise.
          input_fn: returns features and labels.
          steps: the number of steps to add.
          batch_size: of `x` and `y`; None for all of them.
          monitors: monitors and hooks.
          max_steps: the global step to reach.

        Returns:
          This estimator.

        Raises:
          ValueError: arguments that do not go together.
        """
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        input_fn = arrays.chosen(x, y, input_fn, batch_size, shuffle=True, epochs=None)
        hooks = replace_monitors_with_hooks(monitors, self)
        self._engine.train(input_fn, hooks, steps=steps, max_steps=max_steps)
        return self

    def partial_fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: InputFn | None = None,
        steps: int | None = 1,
        batch_size: int | None = None,
        monitors: Sequence[Any] | None = None,
    ) -> BaseEstimator:
        """`fit`, by default for one step."""
        tf.logging.warning(
            "The current implementation of partial_fit is not optimized for use in a loop. "
            "Consider using fit() instead."
        )
        return self.fit(x, y, input_fn, steps, batch_size, monitors)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: InputFn | None = None,
        feed_fn: Callable[[], dict[Any, Any]] | None = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Metrics | None = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: Sequence[Any] | None = None,
        log_progress: bool = True,
    ) -> dict[str, Any]:
        """Evaluates a checkpoint.

        Args:
          x: features, in place of `input_fn`.
          y: labels, likewise.
          input_fn: returns features and labels.
          feed_fn: values of placeholders that `input_fn` returns.
          batch_size: of `x` and `y`; None for all of them.
          steps: the number of steps; None for all of the data.
          metrics: names to `MetricSpec`s, besides the metrics of model_fn.
          name: of this evaluation, for the directory of its events.
          checkpoint_path: the checkpoint to evaluate; None for the newest checkpoint.
          hooks: of the session.
          log_progress: ignored: progress is logged.

        Returns:
          Metric name to numpy scalar, with `loss` and `global_step`.

        Raises:
          ValueError: arguments that do not go together.
          NotFittedError: there is no checkpoint.
        """
        del log_progress
        input_fn = arrays.chosen(x, y, input_fn, batch_size, feed_fn=feed_fn)
        if metrics is not None and not isinstance(metrics, dict):
            raise ValueError(f"Metrics argument should be None or dict. Got {metrics}.")
        self._check_fitted(checkpoint_path)
        hooks = [*(hooks or []), *([tf.train.FeedFnHook(feed_fn)] if feed_fn else [])]
        engine = self._engine.with_model_fn(functools.partial(self._evaluation_spec, metrics))
        return engine.evaluate(input_fn, steps or None, hooks, checkpoint_path, name)

    def predict(
        self,
        x: Any = None,
        input_fn: InputFn | None = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """Predicts, by the newest checkpoint.

        Args:
          x: features, in place of `input_fn`.
          input_fn: returns features, and labels or not. Unless it takes them off a queue, there is
            one batch of them, as in the original.
          batch_size: of `x`; None for all of it.
          outputs: the keys of predictions to give; None for all.
          as_iterable: whether to return an iterator; else the predictions of the first batch, of
            `x` of all batches.
          iterate_batches: whether the iterator gives whole batches.

        Returns:
          Arrays, or dicts of arrays.

        Raises:
          ValueError: arguments that do not go together.
          NotFittedError: there is no checkpoint.
        """
        ends = x is not None
        input_fn = arrays.chosen(x, None, input_fn, batch_size)
        self._check_fitted()
        batches = self._predicted_batches(input_fn, outputs)
        if as_iterable:
            return batches if iterate_batches else arrays.examples(batches)
        return arrays.joined(list(batches)) if ends else next(batches)

    def export_savedmodel(
        self,
        export_dir_base: Any,
        serving_input_fn: InputFn,
        default_output_alternative_key: str | None = None,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """Writes a SavedModel for servers, under a timestamp in `export_dir_base`.

        Args:
          export_dir_base: directory of exports.
          serving_input_fn: returns `InputFnOps`.
          default_output_alternative_key: the head that is served by default.
          assets_extra: path below `assets.extra` to the file to copy there.
          as_text: whether to write text.
          checkpoint_path: the checkpoint to export; None for the newest checkpoint.
          strip_default_attrs: whether to leave out attributes with default values.

        Returns:
          The path of the SavedModel.

        Raises:
          ValueError: no `serving_input_fn`, or no such head.
          NotFittedError: there is no checkpoint.
        """
        if serving_input_fn is None:
            raise ValueError("serving_input_fn must be defined.")
        self._check_fitted(checkpoint_path)
        model_fn = functools.partial(self._exported_spec, default_output_alternative_key)
        return self._engine.with_model_fn(model_fn).export_savedmodel(
            export_dir_base,
            serving.receiver(serving_input_fn),
            assets_extra,
            as_text,
            checkpoint_path,
            strip_default_attrs,
        )

    def _get_train_ops(self, features: Any, labels: Any) -> Any:
        raise NotImplementedError("_get_train_ops not implemented in BaseEstimator")

    def _get_eval_ops(self, features: Any, labels: Any, metrics: Metrics | None) -> Any:
        raise NotImplementedError("_get_eval_ops not implemented in BaseEstimator")

    def _get_predict_ops(self, features: Any) -> Any:
        raise NotImplementedError("_get_predict_ops not implemented in BaseEstimator")

    # What the engine calls.

    def _training_spec(self, features: Any, labels: Any) -> EstimatorSpec:
        self._check_inputs(features, labels)
        return self._get_train_ops(features, labels).estimator_spec()

    def _evaluation_spec(
        self, metrics: Metrics | None, features: Any, labels: Any
    ) -> EstimatorSpec:
        self._check_inputs(features, labels)
        return calling.evaluation_spec(self._get_eval_ops(features, labels, metrics))

    def _prediction_spec(self, features: Any) -> EstimatorSpec:
        ops = self._get_predict_ops(features)
        return EstimatorSpec(ModeKeys.INFER, ops.predictions, scaffold=ops.scaffold)

    def _exported_spec(self, default: str | None, features: Any) -> EstimatorSpec:
        return serving.exported_spec(self._get_predict_ops(features), default)

    def _check_inputs(self, features: Any, labels: Any) -> None:
        if self._features_signature is None:
            self._features_signature = signatures.of(features)
        signatures.check("Features", features, self._features_signature)
        if self._labels_signature is None:
            self._labels_signature = signatures.of(labels)
        if labels is not None:
            signatures.check("Labels", labels, self._labels_signature)

    def _check_fitted(self, checkpoint_path: str | None = None) -> None:
        if not checkpoint_path and not latest(self.model_dir):
            raise NotFittedError(f"Couldn't find trained model at {self.model_dir}.")

    def _predicted_batches(self, input_fn: InputFn, outputs: Sequence[str] | None) -> Iterator[Any]:
        ends = False

        def features_alone() -> Any:
            nonlocal ends
            result = input_fn()
            ends = core_inputs.are_queued(tf.get_default_graph())
            return result[0] if isinstance(result, (list, tuple)) else result

        engine = self._engine.with_model_fn(self._prediction_spec)
        for batch in engine.predict(features_alone, outputs or None, yield_single_examples=False):
            yield batch
            if not ends:
                return


class Estimator(BaseEstimator):
    """Trains, evaluates, predicts and exports with a model_fn of `tf.contrib.learn`.

    Args:
      model_fn: function of features and labels, and of `mode`, `params`, `config` and `model_dir`
        where it declares them; returns `ModelFnOps`, or predictions, loss and train_op.
      model_dir: of checkpoints and events; None for the config's, or a temporary one.
      config: a `RunConfig`; None for defaults.
      params: hyperparameters.
      feature_engineering_fn: of features and labels; returns those that model_fn gets.

    Raises:
      ValueError: model_fn does not take the hyperparameters.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any] | None = None,
        model_dir: str | None = None,
        config: _AnyRunConfig | None = None,
        params: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
    ):
        super().__init__(model_dir, config)
        if model_fn is not None:
            calling.check_model_fn(model_fn, params)
        self._model_fn = model_fn
        self.params = params
        self._feature_engineering_fn = feature_engineering_fn

    @property
    def model_fn(self) -> Callable[..., Any]:
        """model_fn bound to `params`: a function of features, labels, mode and config."""

        def public_model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
            return self._call_model_fn(features, labels, mode, config=config)

        return public_model_fn

    def _call_model_fn(
        self,
        features: Any,
        labels: Any,
        mode: str,
        metrics: Metrics | None = None,
        config: Any = None,
    ) -> Any:
        if self._feature_engineering_fn:
            features, labels = self._feature_engineering_fn(features, labels)
        offered = {
            "mode": mode,
            "params": self.params,
            "config": config or self.config,
            "model_dir": self.model_dir,
        }
        assert self._model_fn is not None
        ops = calling.call_model_fn(self._model_fn, features, labels, offered)
        ops.eval_metric_ops.update(calling.made(metrics, features, labels, ops.predictions))
        return ops

    def _get_train_ops(self, features: Any, labels: Any) -> Any:
        return self._call_model_fn(features, labels, ModeKeys.TRAIN)

    def _get_eval_ops(self, features: Any, labels: Any, metrics: Metrics | None) -> Any:
        return self._call_model_fn(features, labels, ModeKeys.EVAL, metrics)

    def _get_predict_ops(self, features: Any) -> Any:
        # A model_fn that does not ask for the mode makes a loss here too.
        labels = signatures.placeholders(self._labels_signature)
        return self._call_model_fn(features, labels, ModeKeys.INFER)

    def _exported_spec(self, default: str | None, features: Any) -> EstimatorSpec:
        ops = self._call_model_fn(features, None, ModeKeys.INFER)
        return serving.exported_spec(ops, default)


__all__ = [
    "BaseEstimator",
    "Estimator",
    "Evaluable",
    "NotFittedError",
    "SKCompat",
    "Trainable",
]
