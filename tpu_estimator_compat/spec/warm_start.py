"""Warm starts: which variables of a new model take their first values from an old checkpoint."""

import os
from typing import Any, NamedTuple

import tensorflow as tf

from tpu_estimator_compat.config.arguments import check_path, check_type

VocabInfo: Any = tf.compat.v1.train.VocabInfo


class _WarmStartFields(NamedTuple):
    ckpt_to_initialize_from: str
    vars_to_warm_start: Any
    var_name_to_vocab_info: dict[str, Any]
    var_name_to_prev_var_name: dict[str, str]


class WarmStartSettings(_WarmStartFields):
    """`tf.estimator.WarmStartSettings`, the arguments of `tf.compat.v1.train.warm_start`.

    Args:
      ckpt_to_initialize_from: a checkpoint, or a directory whose latest checkpoint is taken.
      vars_to_warm_start: a regular expression over trainable variables (default: all of them), a
        list of them over all global variables, a list of variables, or None for only those in
        `var_name_to_vocab_info`.
      var_name_to_vocab_info: variable name to `VocabInfo`, for embeddings whose vocabulary changed.
      var_name_to_prev_var_name: variable name to its name in the checkpoint, where they differ.

    Raises:
      ValueError: `ckpt_to_initialize_from` is empty.
      TypeError: `ckpt_to_initialize_from` is not a path, or a dict argument is not a dict.

    Example:
      >>> WarmStartSettings("model", vars_to_warm_start="encoder/.*").ckpt_to_initialize_from
      'model'
    """

    def __new__(
        cls,
        ckpt_to_initialize_from: str,
        vars_to_warm_start: Any = ".*",
        var_name_to_vocab_info: dict[str, Any] | None = None,
        var_name_to_prev_var_name: dict[str, str] | None = None,
    ) -> "WarmStartSettings":
        if not ckpt_to_initialize_from:
            raise ValueError(
                "`ckpt_to_initialize_from` MUST be set in WarmStartSettings"
                f" to a checkpoint or a directory of checkpoints. Got {ckpt_to_initialize_from!r}."
            )
        check_path(ckpt_to_initialize_from, "`ckpt_to_initialize_from`")
        names = "a dict with names of variables as keys"
        check_type(var_name_to_vocab_info or {}, "var_name_to_vocab_info", dict, names)
        check_type(var_name_to_prev_var_name or {}, "var_name_to_prev_var_name", dict, names)
        return super().__new__(
            cls,
            ckpt_to_initialize_from,
            vars_to_warm_start,
            var_name_to_vocab_info or {},
            var_name_to_prev_var_name or {},
        )


def default_warm_start_settings(
    warm_start_from: str | bytes | os.PathLike[str] | WarmStartSettings | None,
) -> WarmStartSettings | None:
    """The settings that an estimator's `warm_start_from` stands for; None for None.

    It may be a checkpoint, a directory of checkpoints, ready settings, or a SavedModel's directory
    (known by `variables/variables.index`), whose variables are read like a checkpoint's.
    """
    if warm_start_from is None or isinstance(warm_start_from, WarmStartSettings):
        return warm_start_from
    if not isinstance(warm_start_from, str | bytes | os.PathLike):
        raise ValueError(
            "warm_start_from must be a string or a WarmStartSettings, instead got "
            f"{type(warm_start_from)}: {warm_start_from!r}"
        )
    path = tf.compat.as_text(os.fspath(warm_start_from))
    saved_model_variables = os.path.join(path, "variables", "variables")
    if tf.io.gfile.exists(saved_model_variables + ".index"):
        tf.compat.v1.logging.info("Warm-starting from a SavedModel")
        return WarmStartSettings(saved_model_variables)
    return WarmStartSettings(path)


def check_checkpoint_exists(settings: WarmStartSettings) -> None:
    """Raises tf.errors.NotFoundError, as a checkpoint reader does, where there is no checkpoint."""
    path = settings.ckpt_to_initialize_from
    if tf.io.gfile.isdir(path):
        found, reason = "", "The directory holds no checkpoint"
        try:
            state = tf.train.get_checkpoint_state(path)
            found = state.model_checkpoint_path if state else ""
        except ValueError as error:  # the file is empty or not text
            reason = f"The directory's file `checkpoint` cannot be read: {error}"
    else:
        found, reason = path, f"Failed to find any matching files for {path}"
    # checkpoint_exists takes the path for a glob pattern.
    names = (f"{found}.index", found)
    if not any(map(tf.io.gfile.exists, names)) and not tf.compat.v1.train.checkpoint_exists(found):
        raise tf.errors.NotFoundError(
            None,
            None,
            f"warm_start_from: there is no checkpoint at {path!r}. {reason}. Give the prefix of a "
            "checkpoint, such as /path/model.ckpt-1000, a directory of checkpoints, or that of a "
            "SavedModel.",
        )
