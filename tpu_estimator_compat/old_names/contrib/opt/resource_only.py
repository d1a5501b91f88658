"""A mixin that refuses ref variables."""

from __future__ import annotations

from typing import Any


class ResourceVariablesOnly:
    """Goes before an optimizer that updates resource variables in its own way.

    Without it, TensorFlow would update ref variables in the way of the optimizer below.
    """

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        del grad
        raise NotImplementedError(
            f"{type(self).__name__} updates resource variables only, and {var.name} is none. Take "
            "`use_resource=False` away, or call tf.enable_resource_variables()."
        )

    _apply_sparse = _apply_dense
