"""`tf.contrib`: one module, or folder of modules, per namespace.

A name is included if public code uses it. Names that TensorFlow, tf_keras or tf_slim still have are
taken from there. Users reach a name through `tpu_estimator_compat.v1`. Its row in `legacy/names`
says which module has it, and `tests/old_names/contrib` tests it. No module outside of this folder
imports the folder. Behavior and defaults are those of TensorFlow 1.15.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def taken_over(namespace: dict[str, Any], names: Mapping[Any, str]) -> list[str]:
    """Adds names of other modules to a module's globals, and returns the list of names.

    `names` maps a module to its names, separated by spaces. `old=new` adds the module's name `new`
    as `old`.
    """
    found = {}
    for owner, text in names.items():
        for word in text.split():
            name, _, today = word.partition("=")
            found[name] = getattr(owner, today or name)
    namespace.update(found)
    return list(found)
