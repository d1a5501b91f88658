"""`tf` of TensorFlow 1: `import tpu_estimator_compat.v1 as tf`.

It has all names of `tf.compat.v1`, and the modules that TensorFlow dropped: `estimator`, `layers`,
`keras`, `nn.rnn_cell`, `contrib` (`python -m tpu_estimator_compat names tf.contrib` says more). Its
submodules can be imported: `from tpu_estimator_compat.v1.contrib import tpu`,
`import tpu_estimator_compat.v1.contrib.slim`. Importing it changes nothing in TensorFlow.
"""

import sys

from tpu_estimator_compat.old_names.legacy import namespaces

namespaces.become_v1(sys.modules[__name__])
