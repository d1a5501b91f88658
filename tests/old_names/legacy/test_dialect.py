import ast
import subprocess
import sys

import pytest

from tpu_estimator_compat.old_names.legacy.dialect import (
    Dialect,
    dialect,
    evidence_of_v1,
    makes_graphs,
    meaning,
    names_api,
)
from tpu_estimator_compat.old_names.legacy.references import references


@pytest.mark.parametrize(
    "code",
    [
        "import tensorflow as tf\nx = tf.placeholder(tf.float32)",
        "import tensorflow\nx = tensorflow.placeholder(tensorflow.float32)",
        "import tensorflow as anything\nanything.train.AdamOptimizer()",
        "import tensorflow as tf\ntf.saved_model.signature_constants.DEFAULT_SERVING",
        "import tensorflow as tf\nclass A(tf.train.Optimizer): pass",
        "import tensorflow as tf\nflags = tf.flags",
        "import tensorflow as tf\nslim = tf.contrib.slim",
        "import tensorflow as tf\ngetattr(tf, 'contrib')",
        "import tensorflow as tf\ntrain = tf.train\ntrain.AdamOptimizer()",
        "import tensorflow as tf\ndef f(x=tf.app): pass",
        "import tensorflow as tf\ndef f():\n  return [tf.layers.dense(x, 1) for x in y]",
        "def f():\n  import tensorflow as tf\n  return lambda: tf.get_variable('x')",
        "def f():\n  global tf\n  import tensorflow as tf\ndef g(): tf.Session()",
        "from tensorflow import placeholder",
        "from tensorflow import train\ntrain.AdamOptimizer()",
        "from tensorflow.train import AdamOptimizer",
        "from tensorflow.contrib import tpu",
        "try:\n  import tensorflow.contrib.slim as slim\nexcept ImportError:\n  slim = None",
        "import tensorflow as tf\nif v2: tf.summary.create_file_writer()\nelse: tf.Session()",
    ],
)
def test_tensorflow_1(code):
    assert dialect(ast.parse(code)) is Dialect.V1


@pytest.mark.parametrize(
    "code",
    [
        "",
        "import os\nos.placeholder",
        "import tensorflow as tf",
        "import tensorflow as tf\ntf.keras.layers.Dense(1)",
        "import tensorflow as tf\ntf.estimator.Estimator(f)",
        "import tensorflow as tf\ntf.compat.v1.placeholder(tf.float32)",
        "import tensorflow as tf\ntf1 = tf.compat.v1\ntf1.placeholder(tf1.float32)",
        "import tensorflow.compat.v1 as tf\ntf.placeholder(tf.float32)",
        "import tensorflow.compat.v2 as tf\ntf.summary.create_file_writer()",
        "from tensorflow.compat.v1 import placeholder",
        "from tensorflow.python.tpu import tpu_estimator",
        "import tensorflow as tf\ndef f(tf): return tf.placeholder",
        "import tensorflow as tf\n[tf.placeholder for tf in x]",
        "def f():\n  import tensorflow as tf\ntf.placeholder",
        "class A:\n  import tensorflow as tf\n  def f(self): tf.placeholder",
        "from .tensorflow import placeholder",
        # It copes without contrib, and cannot do without TensorFlow 2.
        "import tensorflow as tf\ntf.summary.create_file_writer('x')\n"
        "try: from tensorflow.contrib import tpu\nexcept ImportError: pass",
        "import tensorflow as tf\ntf.summary.create_file_writer('x')\n"
        "try:\n  from tensorflow.contrib import tpu\n  tpu.rewrite(f)\nexcept ImportError: pass",
    ],
)
def test_tensorflow_2(code):
    assert dialect(ast.parse(code)) is Dialect.V2


def test_evidence_has_its_line():
    code = "import tensorflow as tf\n\nx = tf.reduce_sum(tf.placeholder(tf.float32))"
    found = evidence_of_v1(references(ast.parse(code)))
    assert (found.path, found.line) == ("tensorflow.placeholder", 3)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tensorflow", (Dialect.V2, "")),
        ("tensorflow.compat.v1", (Dialect.V1, "")),
        ("tensorflow.compat.v1.compat.v1.layers", (Dialect.V1, "layers")),
        ("tensorflow.compat.v1.compat.v2.keras", (Dialect.V2, "keras")),
        ("tensorflow.compat.as_text", (Dialect.V2, "compat.as_text")),
    ],
)
def test_meaning(path, expected):
    assert meaning(path, Dialect.V2) == expected


def test_needs_neither_tensorflow_nor_numpy():
    code = """
import ast, sys
from tpu_estimator_compat.old_names.legacy import dialect
dialect.dialect(ast.parse("import tensorflow as tf; tf.x"))
print(sorted(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(done.stdout))
    assert "tpu_estimator_compat.old_names.legacy.dialect" in loaded
    assert loaded.isdisjoint({"tensorflow", "numpy", "keras"})


V1 = "import tensorflow.compat.v1 as tf\n"
OWN = V1 + "with tf.Graph().as_default():\n with tf.Session() as sess:\n  pass\n"
BUILD = V1 + "def build():\n return tf.placeholder(tf.float32)\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import tensorflow.compat.v1 as tf\ntf.Session()", True),
        ("from tensorflow.compat.v1 import placeholder", True),
        ("from tensorflow.compat.v1.train import Supervisor", True),
        ("import tensorflow as tf\ntf.Session()", False),
        ("import tensorflow.compat.v1 as tf\ntf.logging.info('')", False),
        ("import tensorflow.compat.v1 as tf\ntf.disable_eager_execution()\ntf.Session()", False),
        ("import tensorflow.compat.v1 as tf\ntf.Session()\nx.numpy()", False),
        (OWN, False),
        (OWN + " tf.Session()", False),
        (OWN + "tf.Session()", True),
        (BUILD + OWN + "  build()", False),
        (BUILD + OWN + "  build()\nbuild()", True),
        (BUILD + "def all():\n build()\n" + OWN + "  all()", False),
        (BUILD + "f = build", True),
        (V1 + "g = tf.Graph()\nwith g.as_default(): tf.Session()", False),
        (V1 + "with tf.Graph().as_default(), tf.Session(): tf.placeholder(x)", False),
        (V1 + "g = tf.Graph()\ntf.Session(graph=g)", False),
        (V1 + "self.g = tf.Graph()\nwith self.g.as_default(): tf.Session()", False),
        (V1 + "with tf.get_default_graph().as_default(): tf.Session()", True),
        (V1 + "with tf.Session().as_default(): tf.placeholder(x)", True),
        (V1 + "g = tf.Graph()\nwith tf.Session(): tf.placeholder(x)", True),
    ],
)
def test_which_modules_make_graphs_of_compat_v1(code, expected):
    tree = ast.parse(code)
    assert makes_graphs(tree, references(tree)) is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import tensorflow as tf", True),
        ("from tensorflow import estimator", True),
        ("import tensorflow.compat.v1 as tf\ntf.Session()", False),
        ("from tensorflow.python.framework import ops", False),
        ("import os", False),
    ],
)
def test_which_modules_name_tensorflow_itself(code, expected):
    assert names_api(references(ast.parse(code))) is expected
