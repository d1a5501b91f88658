"""The user's names for tensors of an input element."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tpu_estimator_compat.tf_internals import nest


def element_names(element_spec: Any) -> list[str]:
    """The name of each flat tensor of an input element, such as "features['x']"."""
    found = []
    for path, spec in nest.flatten_with_tuple_paths(element_spec):
        if isinstance(element_spec, tuple):
            first, *rest = path  # an index of a plain tuple, a field's name of `Padded`
            first = ("features", "labels")[first] if isinstance(first, int) else first
        else:
            first, rest = "features", path
        name = first + "".join(f"[{part!r}]" for part in rest)
        parts = len(nest.flatten(spec, expand_composites=True))
        found += [name] if parts == 1 else [f"{name} (part {i + 1})" for i in range(parts)]
    return found


def check_no_strings(element_spec: Any) -> None:
    """Raises ValueError, with the tensors' names, where an element for a TPU has strings."""
    specs = nest.flatten(element_spec, expand_composites=True)
    names = element_names(element_spec)
    strings = [n for n, spec in zip(names, specs, strict=True) if spec.dtype == tf.string]
    if strings:
        raise ValueError(
            f"input_fn gives strings, which the cores of a TPU cannot take: {', '.join(strings)}. "
            "Drop them in input_fn, or turn them into integers there."
        )
