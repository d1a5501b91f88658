from ..rewriting import each_rewritten

CASES = {
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
