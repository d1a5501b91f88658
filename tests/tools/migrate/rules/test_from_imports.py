from ..rewriting import each_rewritten

CASES = {
    "alive_names": (
        "import tensorflow as tf\nfrom tensorflow import flags\nfrom tensorflow.nn import relu\n"
        "from tensorflow.python.ops import array_ops\ntf.Session\n",
        "import tpu_estimator_compat.v1 as tf\nfrom tpu_estimator_compat.v1 import flags\n"
        "from tpu_estimator_compat.v1.nn import relu\n"
        "from tensorflow.python.ops import array_ops\ntf.Session\n",
    ),
    "in_a_try": (
        "try:\n  from tensorflow.contrib import tpu as t\nexcept ImportError:\n  t = None\n",
        "try:\n  from tpu_estimator_compat.v1.contrib import tpu as t\n"
        "except ImportError:\n  t = None\n",
    ),
    "compat_v1_from": (
        "from tensorflow.compat import v1 as tf\ntf.layers.dense(x, 1)\n",
        "from tpu_estimator_compat import v1 as tf\ntf.layers.dense(x, 1)\n",
    ),
    "compat_v1_from_without_as": (
        "from tensorflow.compat import v1\nv1.layers.dense(x, 1)\n",
        "from tpu_estimator_compat import v1\nv1.layers.dense(x, 1)\n",
    ),
    "compat_v1_namespace": (
        "from tensorflow.compat.v1 import nn\nnn.rnn_cell.LSTMCell\n",
        "from tpu_estimator_compat.v1 import nn\nnn.rnn_cell.LSTMCell\n",
    ),
    "canned_models_of_2_from": (
        "from tensorflow.estimator import DNNClassifier, RunConfig\n",
        "from tpu_estimator_compat.v1.compat.v2.estimator import DNNClassifier\n"
        "from tpu_estimator_compat.v1.estimator import RunConfig\n",
    ),
    "from_contrib": (
        "from tensorflow.contrib import tpu as contrib_tpu\ncontrib_tpu.TPUConfig()\n",
        "from tpu_estimator_compat.v1.contrib import tpu as contrib_tpu\ncontrib_tpu.TPUConfig()\n",
    ),
    "from_deep_path": (
        "from tensorflow.python.tpu import tpu_estimator\n",
        "from tpu_estimator_compat.v1.estimator import tpu as tpu_estimator\n",
    ),
    "from_estimator_package": (
        "from tensorflow_estimator.python.estimator.tpu import tpu_estimator  # pylint: disable=x\n"
        "tpu_estimator.TPUEstimator\n",
        "from tpu_estimator_compat.v1.estimator import tpu as tpu_estimator  # pylint: disable=x\n"
        "tpu_estimator.TPUEstimator\n",
    ),
    "from_estimator_package_elsewhere": (
        "from tensorflow_estimator.python.estimator.hooks import session_run_hook\n"
        "session_run_hook.SessionRunHook\n",
        "from tpu_estimator_compat import estimator as session_run_hook\n"
        "session_run_hook.SessionRunHook\n",
    ),
    "from_moved": (
        "from tensorflow.contrib.tpu import (\n    TPUConfig,  # of loops\n    RunConfig,\n)\n",
        "from tpu_estimator_compat.v1.estimator.tpu import (\n"
        "    TPUConfig,  # of loops\n    RunConfig,\n)\n",
    ),
    "from_moved_apart": (
        "from tensorflow.contrib.tpu import TPUConfig, CrossShardOptimizer\n",
        "from tpu_estimator_compat.v1.contrib.tpu import TPUConfig, CrossShardOptimizer\n",
    ),
    "from_with_alive": (
        "from tensorflow.compat.v1 import flags, estimator\n",
        "from tpu_estimator_compat.v1 import flags, estimator\n",
    ),
    "from_split": (
        "# both\nfrom tensorflow import keras, estimator as e  # two\ne.Estimator(keras)\n",
        "# both\nfrom tensorflow import keras\n"
        "from tpu_estimator_compat.v1 import estimator as e  # two\ne.Estimator(keras)\n",
    ),
    "from_split_in_brackets": (
        "from tensorflow import (keras,\n    estimator)\n",
        "from tensorflow import keras\nfrom tpu_estimator_compat.v1 import estimator\n",
    ),
    "from_split_on_a_line": (
        "import os; from tensorflow import keras, estimator; x = 1\n",
        "import os; from tensorflow import keras; from tpu_estimator_compat.v1 import estimator; "
        "x = 1\n",
    ),
    "from_split_after_a_colon": (
        "if x: from tensorflow import keras, estimator\n",
        "if x: from tensorflow import keras; from tpu_estimator_compat.v1 import estimator\n",
    ),
}

test_rewritten = each_rewritten(CASES)
