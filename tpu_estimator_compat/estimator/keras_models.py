"""`model_to_estimator`: an estimator for a Keras 2 model, as `tf.keras.estimator` had it.

For each mode, the original's model_fn clones the model into the captured graph, where tf_keras
builds loss, metrics and updates as in TensorFlow 1. The estimator sees an ordinary model_fn.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
import tf_keras
from tensorflow.compat.v1 import logging
from tf_keras.src.utils import losses_utils

from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.engine.capture.capture import new_graph
from tpu_estimator_compat.engine.checkpoint.state import is_whole, latest
from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.estimator import original
from tpu_estimator_compat.estimator.construction import with_model_dir
from tpu_estimator_compat.estimator.estimator import Estimator
from tpu_estimator_compat.keras_model import calls
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys

FORMATS = ("checkpoint", "saver")


class _TensorFlow(types.ModuleType):
    """TensorFlow for the original's module: with Keras 2, and outputs named alike on replicas."""

    keras = tf_keras
    distribute = types.SimpleNamespace(has_strategy=lambda: False)

    def __getattr__(self, name: str) -> Any:
        return getattr(tf, name)


_keras_lib: Any = original.module("keras_lib")
_keras_lib.tf = _TensorFlow("tensorflow")
_keras_lib.tf.compat = types.SimpleNamespace(v1=tf.compat.v1, v2=_keras_lib.tf)


@calls.observed
def model_to_estimator(
    keras_model: Any = None,
    keras_model_path: str | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    model_dir: str | os.PathLike[str] | None = None,
    config: RunConfig | None = None,
    checkpoint_format: str | None = None,
    use_v2_estimator: bool = False,
    metric_names_map: Mapping[str, str] | None = None,
    export_outputs: Mapping[str, Any] | None = None,
) -> Estimator:
    """An `Estimator` that trains a compiled Keras 2 model.

    The weights of a functional or sequential model are written to `<model_dir>/keras`, and the
    estimator warm-starts from there. A subclassed model starts from its initializers. Features
    `{"features": x, "sample_weights": w}` weight the examples.

    Args:
      keras_model: a compiled `tf_keras.Model`; legacy code calls it `tf.keras.Model`. It is cloned.
        A model built eagerly cannot be used directly afterwards: Keras 2 refuses.
      keras_model_path: the path of a saved model, in place of `keras_model`.
      custom_objects: name to class or function, for your own layers and functions.
      model_dir: directory of checkpoints and events.
      config: a `RunConfig`.
      checkpoint_format: "checkpoint", the default, for object-based checkpoints, which a
        `tf.train.Checkpoint(model=...)` of Keras 2 reads; "saver" for checkpoints by variable name.
      use_v2_estimator: ignored: this package has one class of estimators.
      metric_names_map: name of a compiled metric to its name in `evaluate`; all metrics or None.
      export_outputs: name of an output to the class of its signature, an `ExportOutput`. The
        default signature predicts all outputs in any case.

    Raises:
      ValueError: no model or two, a model that is not compiled, a subclassed model that cannot be
        cloned or would need object-based checkpoints, or an unknown format.
      TypeError: a Keras 3 model.
    """
    del use_v2_estimator
    _check_given(keras_model, keras_model_path, custom_objects)
    config = with_model_dir(config, model_dir)
    keras_model = _chosen(keras_model, keras_model_path, custom_objects)
    object_based = _is_object_based(checkpoint_format, keras_model)
    _check_compiled(keras_model)
    model_fn = _keras_lib._create_keras_model_fn(
        keras_model, custom_objects, object_based, metric_names_map, export_outputs
    )
    first = _start(keras_model, custom_objects, config, object_based)
    return Estimator(_with_whole_loss(model_fn), config=config, warm_start_from=first)


def _with_whole_loss(make: Callable[..., EstimatorSpec]) -> Callable[..., EstimatorSpec]:
    """Reports the whole loss; under a strategy the model minimizes a replica's share of it."""

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        spec = make(features, labels, mode)
        share = losses_utils.scale_loss_for_distribution(1.0)
        if mode == ModeKeys.PREDICT or share == 1.0:
            return spec
        return spec._replace(loss=spec.loss / share)

    return model_fn


def model_to_estimator_v1(
    keras_model: Any = None,
    keras_model_path: str | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    model_dir: str | os.PathLike[str] | None = None,
    config: RunConfig | None = None,
    checkpoint_format: str = "saver",
    metric_names_map: Mapping[str, str] | None = None,
    export_outputs: Mapping[str, Any] | None = None,
) -> Estimator:
    """`tf.compat.v1.keras.estimator.model_to_estimator`: checkpoints by variable name."""
    return model_to_estimator(**locals())


def model_to_estimator_v2(
    keras_model: Any = None,
    keras_model_path: str | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    model_dir: str | os.PathLike[str] | None = None,
    config: RunConfig | None = None,
    checkpoint_format: str = "checkpoint",
    metric_names_map: Mapping[str, str] | None = None,
    export_outputs: Mapping[str, Any] | None = None,
) -> Estimator:
    """`tf.keras.estimator.model_to_estimator` of TensorFlow 2: object-based checkpoints."""
    return model_to_estimator(**locals())


def _check_model(model: Any, custom_objects: Mapping[str, Any] | None) -> None:
    if any(base.__module__.startswith("keras.src.") for base in type(model).__mro__):
        raise TypeError(
            "model_to_estimator takes models of Keras 2; "
            f"{type(model).__name__} is one of Keras 3. Build it with tf_keras, `tf.keras` "
            "under tpu_estimator_compat.v1 and in scripts that `run` starts; or train it with its "
            "own `fit`; or call its layers in a model_fn."
        )
    _keras_lib._assert_valid_model(model, custom_objects)


def _loaded(path: str | None, custom_objects: Mapping[str, Any] | None) -> Any:
    if str(path).startswith("gs://") or "storage.googleapis.com" in str(path):
        raise ValueError(
            f"keras_model_path {path!r} is in Google's cloud storage. Copy the file to this "
            "machine first, and give the path of the copy."
        )
    logging.info("Loading models from %s", path)
    return tf_keras.models.load_model(path, custom_objects=custom_objects)


def _is_object_based(checkpoint_format: str | None, model: Any) -> bool:
    if checkpoint_format not in (None, *FORMATS):
        raise ValueError(
            f'Checkpoint format must be one of "checkpoint" or "saver". Got {checkpoint_format}'
        )
    if checkpoint_format == "saver":
        return False
    if not model._is_graph_network and not isinstance(model, tf_keras.Sequential):
        raise ValueError(
            "Object-based checkpoints are currently not supported with subclassed models. Pass "
            "checkpoint_format='saver'."
        )
    return True


def _first_checkpoint(
    model: Any, custom_objects: Mapping[str, Any] | None, config: RunConfig, object_based: bool
) -> str:
    """The checkpoint of the model's own weights; written, in a TensorFlow session, on first use."""
    folder = os.path.join(
        config.model_dir or "", "keras"
    )  # never empty: with_model_dir fills it in
    if (newest := latest(folder)) and is_whole(newest):
        return newest
    weights = model.get_weights() if _keras_lib._any_weight_initialized(model) else None
    tf.io.gfile.makedirs(folder)
    path = os.path.join(folder, "keras_model.ckpt")
    with new_graph(config.tf_random_seed):
        clone = _keras_lib._clone_and_build_model(ModeKeys.TRAIN, model, custom_objects)
        clone._make_train_function()  # creates the optimizer's variables
        with tf.compat.v1.Session(config=config.session_config) as session:
            if weights:
                clone.set_weights(weights)
            tf_keras.__internal__.backend.initialize_variables(session)
            if object_based:
                step = tf.compat.v1.train.get_global_step()
                clone._track_trackable(step, "estimator_global_step")
                clone.save_weights(path)
            else:
                tf.compat.v1.train.Saver().save(session, path)
    user_files.sync_tree(folder)
    return path


def _check_given(keras_model: Any, keras_model_path: Any, custom_objects: Any) -> None:
    if not (keras_model or keras_model_path):
        raise ValueError("Either `keras_model` or `keras_model_path` needs to be provided.")
    if keras_model and keras_model_path:
        raise ValueError("Please specity either `keras_model` or `keras_model_path`, but not both.")
    if keras_model:
        _check_model(keras_model, custom_objects)


def _chosen(keras_model: Any, keras_model_path: Any, custom_objects: Any) -> Any:
    if not keras_model:
        return _loaded(keras_model_path, custom_objects)
    logging.info("Using the Keras model provided.")
    return keras_model


def _check_compiled(keras_model: Any) -> None:
    if not getattr(keras_model, "optimizer", None):
        raise ValueError(
            "The given keras model has not been compiled yet. Please compile the model with "
            "`model.compile()` before calling `model_to_estimator()`."
        )


def _start(
    keras_model: Any, custom_objects: Any, config: RunConfig, object_based: bool
) -> str | None:
    if keras_model._is_graph_network and config.is_chief:
        return _first_checkpoint(keras_model, custom_objects, config, object_based)
    if keras_model.built:
        logging.warning(
            "You are creating an Estimator from a Keras model manually subclassed from `Model`, "
            "that was already called on some inputs (and thus already had weights). The estimator "
            "starts from the initializers: only functional and sequential models keep theirs."
        )
    return None
