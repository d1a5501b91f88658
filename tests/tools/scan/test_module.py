import textwrap

import pytest

from tpu_estimator_compat.tools.scan.findings import Status
from tpu_estimator_compat.tools.scan.module import scan_text


def found(code):
    return [(f.line, f.name, f.status.value) for f in scan_text(textwrap.dedent(code), "a.py")]


SPEC = "tf.contrib.tpu.TPUEstimatorSpec"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "import tensorflow as tf\ntf.contrib.tpu.TPUEstimatorSpec(mode)",
            [(1, "tf", "works"), (2, SPEC, "works")],
        ),
        (
            "from tensorflow.contrib import slim\nslim.nets.vgg.vgg_16\nslim.nets.resnet_v1",
            [
                (1, "tf.contrib.slim", "works"),
                (2, "tf.contrib.slim.nets.vgg.vgg_16", "works"),
                (3, "tf.contrib.slim.nets.resnet_v1", "works"),
            ],
        ),
        (
            "from tensorflow.contrib.slim.nets import inception",
            [(1, "tf.contrib.slim.nets.inception", "works")],
        ),
        (
            "import tensorflow.compat.v1 as tf\ntf.estimator.BoostedTreesClassifier(3)",
            [(2, "tf.estimator.BoostedTreesClassifier", "refused")],
        ),
        (
            "import tensorflow.compat.v1 as tf\ntf.layers.dense(x, 1)",
            [(2, "tf.layers.dense", "works")],
        ),
        (
            "from tensorflow import estimator\nestimator.Estimator(f)",
            [(1, "tf.estimator", "works"), (2, "tf.estimator.Estimator", "works")],
        ),
        (
            "from tensorflow.contrib import tpu as contrib_tpu\ncontrib_tpu.TPUEstimatorSpec",
            [(1, "tf.contrib.tpu", "works"), (2, SPEC, "works")],
        ),
        (
            "from tensorflow import contrib\ncontrib.tpu.TPUEstimatorSpec",
            [(1, "tf.contrib", "works"), (2, SPEC, "works")],
        ),
        (
            "import tensorflow as tf\nc = tf.contrib\ntpu = c.tpu\ntpu.TPUEstimatorSpec",
            [
                (1, "tf", "works"),
                (2, "tf.contrib", "works"),
                (3, "tf.contrib.tpu", "works"),
                (4, SPEC, "works"),
            ],
        ),
        (
            "from tensorflow.python.tpu import tpu_estimator\ntpu_estimator.TPUEstimator",
            [
                (1, "tf.python.tpu.tpu_estimator", "works"),
                (2, "tf.python.tpu.tpu_estimator.TPUEstimator", "works"),
            ],
        ),
        *(
            (
                f"from {root}.{module} import {name}",
                [(1, f"{said}.{module}.{name}", status)],
            )
            for root, said in (
                ("tensorflow_estimator.python.estimator", "tensorflow_estimator.python.estimator"),
                ("tensorflow.python.estimator", "tf.python.estimator"),
            )
            for module, name, status in (
                ("training", "_nothing", "unknown"),
                ("tpu.tpu_estimator", "_InputPipeline", "refused"),
                ("tpu.tpu_estimator", "TPUEstimator", "works"),
                ("estimator_lib", "BoostedTreesClassifier", "unknown"),
            )
        ),
        (
            "from tensorflow.python.estimator.training import _TrainingExecutor",
            [
                (
                    1,
                    "tensorflow_estimator.python.estimator.training._TrainingExecutor",
                    "works",
                )
            ],
        ),
        (
            "from tensorflow_estimator.python.estimator.tpu import tpu_estimator",
            [(1, "tensorflow_estimator.python.estimator.tpu.tpu_estimator", "works")],
        ),
        (
            "from tensorflow_estimator.python.estimator import no_such_module",
            [(1, "tensorflow_estimator.python.estimator.no_such_module", "unknown")],
        ),
        (
            "import tensorflow.contrib.no_such_thing as n\nn.f()",
            [
                (1, "tf.contrib.no_such_thing", "unknown"),
                (2, "tf.contrib.no_such_thing.f", "unknown"),
            ],
        ),
        (
            "import tensorflow.contrib.tpu\ntensorflow.contrib.tpu.TPUEstimatorSpec",
            [(1, "tf.contrib.tpu", "works"), (2, SPEC, "works")],
        ),
        (
            "import tensorflow as tf\ntf.estimator.BoostedTreesClassifier",
            [(2, "tf.estimator.BoostedTreesClassifier", "refused")],
        ),
        (
            "import tensorflow as tf\ntf.estimator.no_such_name",
            [(2, "tf.estimator.no_such_name", "unknown")],
        ),
        (
            "def f():\n  import tensorflow as tf\n  return [tf.estimator.RunConfig() for x in y]",
            [(3, "tf.estimator.RunConfig", "works")],
        ),
        (
            "try:\n  from tensorflow.contrib import tpu\nexcept ImportError:\n  tpu = None\n"
            "tpu.TPUEstimatorSpec",
            [(2, "tf.contrib.tpu", "works"), (5, SPEC, "works")],
        ),
        (
            "from tensorflow import flags, placeholder as p",
            [(1, "tf.flags", "works"), (1, "tf.placeholder", "works")],
        ),
        (
            "import tensorflow as tf\ntf.compat.v1.layers.dense(tf.keras.Input(1))",
            [(2, "tf.layers.dense", "works")],
        ),
        (
            "import tensorflow as tf\ntf.compat.v1.keras.layers.Dense",
            [(2, "tf.keras.layers.Dense", "differs")],
        ),
        (
            "from tensorflow.contrib import eager as tfe\ntfe.Variable\ntfe.Network",
            [
                (1, "tf.contrib.eager", "works"),
                (2, "tf.contrib.eager.Variable", "works"),
                (3, "tf.contrib.eager.Network", "refused"),
            ],
        ),
        # What must be changed by hand.
        ("from tensorflow.contrib.tpu import *", [(1, "tf.contrib.tpu", "by hand")]),
        (
            "import importlib\nimportlib.import_module('tensorflow.contrib.tpu')",
            [(2, "tf.contrib.tpu", "by hand")],
        ),
        (
            "import tensorflow as tf\ngetattr(tf, 'estimator').Estimator",
            [(2, "tf.estimator", "by hand")],
        ),
        (
            "import tensorflow as tf\n"
            "if new:\n  tf.summary.create_file_writer(d)\nelse:\n  tf.Session()",
            [(1, "tf", "works"), (3, "tensorflow.summary.create_file_writer", "by hand")],
        ),
        # After `migrate`.
        (
            "import tpu_estimator_compat.v1 as tf\ntf.layers.dense\ntf.placeholder\n"
            "tf.estimator.BoostedTreesClassifier\ntf.contrib.no_such_thing",
            [
                (4, "tf.estimator.BoostedTreesClassifier", "refused"),
                (5, "tf.contrib.no_such_thing", "unknown"),
            ],
        ),
    ],
)
def test_found(code, expected):
    assert found(code) == expected


@pytest.mark.parametrize(
    "code",
    [
        "",
        "import tensorflow as tf\ntf.keras.layers.Dense(1)\ntf.function(f)",
        "import tensorflow as tf\ntf.compat.v1.placeholder(tf.float32)",
        "import tensorflow.compat.v1 as tf\ntf.placeholder(tf.float32)\ntf.app.run()",
        "from tensorflow import keras\nkeras.Model",
        "from tensorflow.python.ops import array_ops\narray_ops.shape(x)",
        "from tensorflow.core.protobuf import config_pb2",
        "import contrib\ncontrib.tpu.TPUEstimator",
        "def f(tf): return tf.contrib.tpu",
        "from . import estimator\nestimator.Estimator",
        "logging.getLogger('tensorflow')",
        "import tpu_estimator_compat as tpu\ntpu.TPUEstimator(f)",
        "from tpu_estimator_compat import v1\nv1.estimator.Estimator(f)",
    ],
)
def test_alive(code):
    assert found(code) == []


def test_place_and_advice():
    code = "import tensorflow as tf\nx = 'é', tf.contrib.tpu.TPUConfig\n"
    finding = scan_text(code, "models/a.py")[1]
    assert finding.place == "models/a.py:2"
    assert finding.column == 10
    assert finding.advice == "Write tpu_estimator_compat.v1.estimator.tpu.TPUConfig."
    refused = scan_text("import tensorflow as tf\ntf.estimator.BoostedTreesClassifier", "a.py")[0]
    assert "Train trees" in refused.advice
    assert refused.status.is_manual


def test_an_import_that_means_tensorflow_1_says_how_it_shows():
    code = "import tensorflow as tf\n\nx = tf.placeholder(tf.float32)"
    [finding] = scan_text(code, "a.py")
    assert (finding.line, finding.column, finding.status) == (1, 8, Status.WORKS)
    assert finding.advice == "It means TensorFlow 1 here: line 3 uses tf.placeholder."


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os\nprint 'hello'\nexec 'x'", "`print x` is `print(x)` now"),
        ("x = 1\ny = 0777", "`010` is `0o10`"),
        ("if x:\n\ty = 1\n        z = 2", "Tabs and spaces"),
    ],
)
def test_python_2_that_cannot_be_rewritten(code, words):
    [finding] = scan_text(code, "a.py")
    assert finding.status is Status.UNREADABLE
    assert words in finding.advice
    assert "2to3" in finding.advice
    assert finding.line > 1


def test_python_2_hides_no_dead_name():
    code = (
        "import tensorflow as tf\nprint 'a', tf.contrib.tpu.TPUConfig\nx = long(3)\nd.itervalues()"
    )
    assert [(f.line, f.column, f.name, f.status.value) for f in scan_text(code, "a.py")] == [
        (1, 8, "tf", "works"),
        (2, 0, "", "python 2"),
        (2, 0, "Python 2", "differs"),
        (2, 12, "tf.contrib.tpu.TPUConfig", "works"),
        (3, 5, "long", "works"),
        (4, 1, "dict.itervalues", "python 2"),
    ]


def test_what_is_not_python_at_all():
    [finding] = scan_text("this is a letter", "a.py")
    assert finding.status is Status.UNREADABLE
    assert finding.advice == "It is not Python 3: invalid syntax."
    assert finding.line == 1
