"""The check that decoders and wrappers make of their cell."""

from __future__ import annotations

from typing import Any


def check_cell(cell: Any) -> None:
    """Raises a TypeError where `cell` lacks an attribute of RNN cells."""
    missing = [
        text
        for found, text in (
            (hasattr(cell, "output_size"), "'output_size' property is missing"),
            (hasattr(cell, "state_size"), "'state_size' property is missing"),
            (
                hasattr(cell, "zero_state") or hasattr(cell, "get_initial_state"),
                "either 'zero_state' or 'get_initial_state' method is required",
            ),
            (callable(cell), "is not callable"),
        )
        if not found
    ]
    if missing:
        raise TypeError(f"The argument 'cell' ({cell}) is not an RNNCell: {', '.join(missing)}.")
