"""`tf.contrib`: one module, or folder of modules, per namespace.

The modules have names that TensorFlow, tf_keras and tf_slim lack. A name is included if public code
uses it. Users reach it through `tpu_estimator_compat.v1`; its row in `legacy/names` says which
module serves it, and `tests/old_names/contrib` tests it. Nothing outside of this folder imports it.
Behavior and defaults are those of TensorFlow 1.15.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def taken_over(namespace: dict[str, Any], names: Mapping[Any, str]) -> list[str]:
    """Adds names of other modules to a module's globals, and returns the list of names.

    `names` maps a module to its names, separated by spaces; `name=today` renames.
    """
    found = {}
    for owner, text in names.items():
        for word in text.split():
            name, _, today = word.partition("=")
            found[name] = getattr(owner, today or name)
    namespace.update(found)
    return list(found)
