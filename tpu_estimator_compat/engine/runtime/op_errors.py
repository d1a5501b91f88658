"""Messages of TensorFlow's errors, without names of internal functions and nodes."""

from __future__ import annotations

import re

import tensorflow as tf

_BEFORE = re.compile(
    r"^Graph execution error:\s+"
    r"(Detected at node [^\n]*\n(<stack traces unavailable>\n|(\s*File [^\n]*\n\s*)+)?)?"
)
_AFTER = re.compile(r"\s*(\[\[\{\{node [^\]]*\]\]|\[Op:[^\]]*\])")


def words(error: tf.errors.OpError) -> str:
    """The cause of `error`, in one line if possible."""
    return _AFTER.sub("", _BEFORE.sub("", error.message)).strip().rstrip(".")
