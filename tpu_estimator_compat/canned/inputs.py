"""What canned models ask of the features that an input_fn gives."""

from __future__ import annotations

from typing import Any


def check_features(features: Any) -> None:
    """Refuses features that are no dict.

    Raises:
      ValueError: they are not.
    """
    if not isinstance(features, dict):
        raise ValueError(
            f"features should be a dictionary of `Tensor`s. Given type: {type(features)}"
        )
