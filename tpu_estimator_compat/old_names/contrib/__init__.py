"""`tf.contrib`: a module, or a folder of modules, for each namespace.

They have names that neither TensorFlow, tf_keras nor tf_slim has. A name is admitted if public code
used it. Users reach it through `tpu_estimator_compat.v1`. Its row in `legacy/names` says which
module serves it; its proof is in `tests/old_names/contrib`. Nothing outside of this folder imports
it. Behaviour and defaults are those of TensorFlow 1.15.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def taken_over(namespace: dict[str, Any], names: Mapping[Any, str]) -> list[str]:
    """Gives a module's globals the names that other modules still have, and lists them.

    Names are words, `name`, or `name=today` where the name is another today.
    """
    found = {}
    for owner, text in names.items():
        for word in text.split():
            name, _, today = word.partition("=")
            found[name] = getattr(owner, today or name)
    namespace.update(found)
    return list(found)
