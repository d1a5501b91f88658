from .rewriting import each_rewritten

CASES = {
    # Imports of modules.
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
    # Imports of names.
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
    # Added imports.
    "v2": (
        "import tensorflow as tf\ntf.estimator.Estimator(f)\ntf.keras.Input(1)\n",
        "import tensorflow as tf\nfrom tpu_estimator_compat import v1\n"
        "v1.estimator.Estimator(f)\ntf.keras.Input(1)\n",
    ),
    "v2_compat": (
        "import tensorflow as tf\n"
        "tf.compat.v1.layers.dense(tf.compat.v1.placeholder(tf.int8), 1)\n",
        "import tensorflow as tf\nfrom tpu_estimator_compat import v1\n"
        "v1.layers.dense(tf.compat.v1.placeholder(tf.int8), 1)\n",
    ),
    "v2_assigned_alias": (
        "import tensorflow as tf\ntf1 = tf.compat.v1\ntf1.layers.dense\ntf1.placeholder\n",
        "import tensorflow as tf\nfrom tpu_estimator_compat import v1\n"
        "tf1 = tf.compat.v1\nv1.layers.dense\ntf1.placeholder\n",
    ),
    "v2_assigned_dead_alias": (
        "import tensorflow as tf\nlayers = tf.compat.v1.layers\nlayers.dense\n",
        "import tensorflow as tf\nfrom tpu_estimator_compat import v1\n"
        "layers = v1.layers\nlayers.dense\n",
    ),
    "v2_submodule": (
        "import tensorflow.estimator\ntensorflow.estimator.Estimator\n",
        "import tensorflow\nfrom tpu_estimator_compat import v1\nv1.estimator.Estimator\n",
    ),
    "v2_explicit": (
        "import tensorflow.compat.v2 as tf\ntf.estimator.Estimator\n",
        "import tensorflow.compat.v2 as tf\nfrom tpu_estimator_compat import v1\n"
        "v1.estimator.Estimator\n",
    ),
    "v2_name_taken": (
        "import tensorflow as tf\ndef f(v1): return tf.estimator, v1\n",
        "import tensorflow as tf\nfrom tpu_estimator_compat import v1 as tf_v1\n"
        "def f(v1): return tf_v1.estimator, v1\n",
    ),
    "v2_import_there": (
        "import tensorflow as tf\nimport os\nfrom tpu_estimator_compat import v1 as old\n"
        "tf.estimator.Estimator\n",
        "import tensorflow as tf\nimport os\nfrom tpu_estimator_compat import v1 as old\n"
        "old.estimator.Estimator\n",
    ),
    "v2_place_of_the_import": (
        '#!/usr/bin/python\n"""Doc."""\nfrom __future__ import annotations\nimport os\n'
        'os.environ["A"] = "1"\nimport tensorflow as tf  # late\n\ntf.estimator.Estimator\n',
        '#!/usr/bin/python\n"""Doc."""\nfrom __future__ import annotations\nimport os\n'
        'os.environ["A"] = "1"\nimport tensorflow as tf  # late\n'
        "from tpu_estimator_compat import v1\n\nv1.estimator.Estimator\n",
    ),
    "v2_imported_in_a_function": (
        '"""Doc."""\nimport os\ndef f():\n  import tensorflow as tf\n  tf.estimator.RunConfig()\n',
        '"""Doc."""\nimport os\nfrom tpu_estimator_compat import v1\n'
        "def f():\n  import tensorflow as tf\n  v1.estimator.RunConfig()\n",
    ),
    "v2_used_on_the_line_of_the_import": (
        "import tensorflow as tf; e = tf.estimator",
        "from tpu_estimator_compat import v1\nimport tensorflow as tf; e = v1.estimator",
    ),
    "v2_imported_in_a_try": (
        "try:\n  import tensorflow as tf\nexcept ImportError:\n  tf = None\n"
        "tf.estimator.RunConfig\n",
        "try:\n  import tensorflow as tf\nexcept ImportError:\n  tf = None\n"
        "from tpu_estimator_compat import v1\nv1.estimator.RunConfig\n",
    ),
}

test_rewritten = each_rewritten(CASES)
