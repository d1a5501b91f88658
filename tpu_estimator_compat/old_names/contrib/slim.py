"""`tf.contrib.slim`: the package tf_slim, loaded a second time with the `tf` of TensorFlow 1.

tf_slim uses names that TensorFlow 2.21 has moved or dropped, such as `control_flow_ops.cond` and
the batch normalization of `tf.layers`. So its modules are loaded from their files under this
module's name, with an `__import__` that gives them the `tf` of `tpu_estimator_compat.v1`. For
other modules, `tf_slim` and TensorFlow do not change.
"""

import sys
from typing import TYPE_CHECKING, Any

from tpu_estimator_compat.engine.packages import package_copy
from tpu_estimator_compat.old_names.legacy.imports import of_copies

package_copy.load_into(sys.modules[__name__], "tf_slim", of_copies())

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
