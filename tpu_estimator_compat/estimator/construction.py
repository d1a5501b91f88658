"""What estimators check when they are made: overridden members, the config and the model_dir."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import RunConfig, default_session_config
from tpu_estimator_compat.config.arguments import check_path

_NEVER_CALLED = frozenset(
    {
        "_augment_model_fn",
        "_call_model_fn_for_inference",
        "_create_and_assert_global_step",
        "_export_all_saved_models",
    }
)
"""Methods that the original lets subclasses override, and that this package never calls."""

_ALLOWED = frozenset({"latest_checkpoint", "model_fn"})


def check_overrides(base: type, estimator: Any) -> None:
    """Raises if the class of `estimator` overrides members of `base`.

    ValueError if the original refused them; NotImplementedError if only the original calls them.
    """
    cls = type(estimator)
    if cls.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return
    from tpu_estimator_compat.engine.packages import tensorflow_estimator

    of_original = vars(tensorflow_estimator.module("estimator").Estimator)
    names = {name for name in of_original if name.startswith("_")} | {*dir(base)}
    members = {n for n in names if not n.startswith("__")} - _ALLOWED - _NEVER_CALLED
    own = {name for name, value in vars(cls).items() if value is not vars(base).get(name)}
    overridden = sorted(members & own)
    # The original lets a class of this name override everything.
    is_copy = cls.__name__ == "TPUEstimator"
    if overridden and not is_copy:
        raise ValueError(
            "Subclasses of Estimator cannot override members of Estimator. "
            f"{cls} does override {overridden}"
        )
    private = {name for name in overridden if name.startswith("_")}
    if unused := sorted(private | _NEVER_CALLED & own):
        raise NotImplementedError(
            f"{cls} overrides {unused}, which the original's estimators called, and this "
            "package does not call. Take TPUEstimator from tf.estimator.tpu in place of a copy of "
            "its source, and make the change in model_fn, input_fn or a hook."
        )


def with_model_dir(config: RunConfig | None, model_dir: str | os.PathLike[str] | None) -> RunConfig:
    """The config with a session config and a model_dir; ValueError for two model_dirs."""
    if config is None:
        config = RunConfig()
        logging.info("Using default config.")
    if not isinstance(config, RunConfig):
        raise ValueError(f"config must be an instance of `RunConfig`, but provided {config}.")
    if config.session_config is None:
        config = config.replace(session_config=default_session_config())
    if model_dir is not None:
        check_path(model_dir, "model_dir")
        model_dir = os.fspath(model_dir)
        if config.model_dir is not None and config.model_dir != model_dir:
            raise ValueError(
                "`model_dir` are set both in constructor and `RunConfig`, but with different "
                f"values. In constructor: '{model_dir}', in `RunConfig`: '{config.model_dir}' "
            )
    if model_dir:
        return config.replace(model_dir=model_dir)
    if config.model_dir is None:
        model_dir = tempfile.mkdtemp()
        logging.warning("Using temporary folder as model directory: %s", model_dir)
        return config.replace(model_dir=model_dir)
    return config
