"""What a step cannot do exactly, and a session of TensorFlow can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.environment import SESSION


def session(captured: CapturedMode, hooks: Sequence[Any]) -> bool:
    """Whether a session runs the graph of a mode; logs why, unless the runtime says so."""
    return captured.topology.runtime == SESSION
