from ..rewriting import each_rewritten

CASES = {
    "moved": (
        "import tensorflow as tf\ntf.contrib.tpu.TPUEstimatorSpec(mode)\n",
        "import tpu_estimator_compat.v1 as tf\ntf.estimator.tpu.TPUEstimatorSpec(mode)\n",
    ),
    "moved_module": (
        "import tensorflow as tf\ntf.contrib.tpu.python.tpu.tpu_config.TPUConfig()\n",
        "import tpu_estimator_compat.v1 as tf\ntf.estimator.tpu.TPUConfig()\n",
    ),
    "assigned_alias": (
        "import tensorflow as tf\ntpu = tf.contrib.tpu\ntpu.TPUConfig\n",
        "import tpu_estimator_compat.v1 as tf\ntpu = tf.contrib.tpu\ntpu.TPUConfig\n",
    ),
    "rebound": (
        "import tensorflow as tf\ntf = tf.compat.v1\ntf.Session\ntf.layers.dense\n",
        "import tpu_estimator_compat.v1 as tf\ntf = tf.compat.v1\ntf.Session\ntf.layers.dense\n",
    ),
    "getattr": (
        "import tensorflow as tf\ngetattr(tf, 'contrib').tpu\n",
        "import tpu_estimator_compat.v1 as tf\ngetattr(tf, 'contrib').tpu\n",
    ),
    "canned_models_of_1": (
        "import tensorflow as tf\ntf.Session()\ntf.estimator.LinearClassifier([])\n",
        "import tpu_estimator_compat.v1 as tf\ntf.Session()\ntf.estimator.LinearClassifier([])\n",
    ),
    "canned_models_of_2": (
        "import tensorflow as tf\ntf.estimator.LinearClassifier([])\n",
        "import tensorflow as tf\nfrom tpu_estimator_compat import v1\n"
        "v1.compat.v2.estimator.LinearClassifier([])\n",
    ),
    "canned_models_of_2_in_a_namespace": (
        "from tensorflow import estimator\nestimator.DNNRegressor([], [])\nestimator.RunConfig\n",
        "from tpu_estimator_compat.v1 import estimator\nfrom tpu_estimator_compat import v1\n"
        "v1.compat.v2.estimator.DNNRegressor([], [])\nestimator.RunConfig\n",
    ),
    "letters_before": (
        "import tensorflow as tf\nx = 'éé𝔘', tf.contrib.tpu.TPUConfig\n",
        "import tpu_estimator_compat.v1 as tf\nx = 'éé𝔘', tf.estimator.tpu.TPUConfig\n",
    ),
    "brackets": (
        "import tensorflow as tf\nx = (tf.contrib.tpu).TPUConfig, (tf\n  .contrib.tpu.TPUConfig)\n",
        "import tpu_estimator_compat.v1 as tf\nx = tf.estimator.tpu.TPUConfig, "
        "(tf.estimator.tpu.TPUConfig)\n",
    ),
}

test_rewritten = each_rewritten(CASES)
