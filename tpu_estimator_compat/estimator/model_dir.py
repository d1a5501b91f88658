"""Chooses the model_dir of an estimator: the argument, the config's, or a temporary directory."""

from __future__ import annotations

import os
import tempfile

from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import RunConfig, default_session_config
from tpu_estimator_compat.config.arguments import check_path


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
