from ..rewriting import each_rewritten

CASES = {
    "bare": (
        "import tensorflow as tf\nx = tf.placeholder(tf.float32)\n",
        "import tpu_estimator_compat.v1 as tf\nx = tf.placeholder(tf.float32)\n",
    ),
    "bare_without_as": (
        "import tensorflow\nx = tensorflow.placeholder(tensorflow.float32)\n",
        "import tpu_estimator_compat.v1 as tensorflow\n"
        "x = tensorflow.placeholder(tensorflow.float32)\n",
    ),
    "among_others": (
        "import os, tensorflow as tf, sys  # three\ntf.Session()\n",
        "import os, tpu_estimator_compat.v1 as tf, sys  # three\ntf.Session()\n",
    ),
    "submodule_without_as": (
        "import tensorflow.contrib.tpu\ntensorflow.contrib.tpu.TPUConfig\n",
        "import tpu_estimator_compat.v1 as tensorflow\ntensorflow.estimator.tpu.TPUConfig\n",
    ),
    "submodule_with_as": (
        "import tensorflow.contrib.tpu as t\nt.TPUConfig\n",
        "import tpu_estimator_compat.v1.contrib.tpu as t\nt.TPUConfig\n",
    ),
    "internals_beside": (
        "import tensorflow\nimport tensorflow.python.ops.array_ops\ntensorflow.placeholder\n",
        "import tpu_estimator_compat.v1 as tensorflow\n"
        "import tpu_estimator_compat.v1 as tensorflow\ntensorflow.placeholder\n",
    ),
    "in_functions": (
        "def f():\n\timport tensorflow as tf\n\treturn lambda: tf.Session()\n",
        "def f():\n\timport tpu_estimator_compat.v1 as tf\n\treturn lambda: tf.Session()\n",
    ),
    "compat_v1": (
        "import tensorflow.compat.v1 as tf\ntf.layers.dense(x, 1)\n",
        "import tpu_estimator_compat.v1 as tf\ntf.layers.dense(x, 1)\n",
    ),
    "estimator_package": (
        "import tensorflow_estimator as tfe\ntfe.estimator.Estimator\n",
        "import tpu_estimator_compat.v1 as tfe\n"
        "from tpu_estimator_compat import v1\nv1.estimator.Estimator\n",
    ),
}

test_rewritten = each_rewritten(CASES)
