"""The names of modes in `tf.contrib.learn`."""

from __future__ import annotations


class ModeKeys:
    """Names of the modes of a model_fn; their values are those of `tf.estimator.ModeKeys`."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"

    @classmethod
    def validate(cls, key: str) -> None:
        if key not in (cls.TRAIN, cls.EVAL, cls.INFER):
            raise ValueError(f"Invalid mode {key}.")


__all__ = ["ModeKeys"]
