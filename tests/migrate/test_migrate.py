"""What `migrate` makes of a module: every way to write a dead name, and no other byte."""

import ast
import textwrap

import pytest

from tpu_estimator_compat.migrate.codemod import migrate_text
from tpu_estimator_compat.scan import Status, scan_text

CASES = {
    # A module that means TensorFlow 1 gets another `tf`.
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
    "alive_names": (
        "import tensorflow as tf\nfrom tensorflow import flags\nfrom tensorflow.nn import relu\n"
        "from tensorflow.python.ops import array_ops\ntf.Session\n",
        "import tpu_estimator_compat.v1 as tf\nfrom tpu_estimator_compat.v1 import flags\n"
        "from tpu_estimator_compat.v1.nn import relu\n"
        "from tensorflow.python.ops import array_ops\ntf.Session\n",
    ),
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
    "in_functions": (
        "def f():\n\timport tensorflow as tf\n\treturn lambda: tf.Session()\n",
        "def f():\n\timport tpu_estimator_compat.v1 as tf\n\treturn lambda: tf.Session()\n",
    ),
    "in_a_try": (
        "try:\n  from tensorflow.contrib import tpu as t\nexcept ImportError:\n  t = None\n",
        "try:\n  from tpu_estimator_compat.v1.contrib import tpu as t\n"
        "except ImportError:\n  t = None\n",
    ),
    # So does one that uses dead names through `tensorflow.compat.v1`.
    "compat_v1": (
        "import tensorflow.compat.v1 as tf\ntf.layers.dense(x, 1)\n",
        "import tpu_estimator_compat.v1 as tf\ntf.layers.dense(x, 1)\n",
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
    # Of names that mean another thing in TensorFlow 2, the one that was meant.
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
    "canned_models_of_2_from": (
        "from tensorflow.estimator import DNNClassifier, RunConfig\n",
        "from tpu_estimator_compat.v1.compat.v2.estimator import DNNClassifier\n"
        "from tpu_estimator_compat.v1.estimator import RunConfig\n",
    ),
    # From imports.
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
    "estimator_package": (
        "import tensorflow_estimator as tfe\ntfe.estimator.Estimator\n",
        "import tpu_estimator_compat.v1 as tfe\n"
        "from tpu_estimator_compat import v1\nv1.estimator.Estimator\n",
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
    # A module that means TensorFlow 2 keeps it.
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
    # Bytes.
    "windows": (
        "import tensorflow as tf\r\ntf.estimator.Estimator\r\n",
        "import tensorflow as tf\r\nfrom tpu_estimator_compat import v1\r\n"
        "v1.estimator.Estimator\r\n",
    ),
    "layout": (
        "import  tensorflow   as tf\n\n\nx = [ tf . contrib.tpu.TPUConfig ,\n 1 ]   # é\n\t\n",
        "import  tpu_estimator_compat.v1   as tf\n\n\nx = [ tf.estimator.tpu.TPUConfig ,\n"
        " 1 ]   # é\n\t\n",
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
    "form_feeds": (
        "import tensorflow as tf\n\f\ntf.Session()\n",
        "import tpu_estimator_compat.v1 as tf\n\f\ntf.Session()\n",
    ),
    "no_last_newline": (
        "import tensorflow as tf\ntf.Session()",
        "import tpu_estimator_compat.v1 as tf\ntf.Session()",
    ),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_rewritten(before, after):
    migration = migrate_text(before, "a.py")
    assert migration.after == after
    assert migration.left == []
    assert migration.mended == len(scan_text(before, "a.py"))
    ast.parse(after)


@pytest.mark.parametrize("after", [after for _, after in CASES.values()], ids=CASES)
def test_idempotent(after):
    again = migrate_text(after, "a.py")
    assert again.after == after
    assert again.found == again.left == []


@pytest.mark.parametrize(
    "code",
    [
        "",
        "x = 1\r\ny = 2\n",
        "import tensorflow as tf\ntf.keras.Input(1)\n",
        "import tensorflow.compat.v1 as tf\ntf.placeholder(tf.float32)\n",
        "from tensorflow.compat.v1 import flags\n",
        "from tensorflow.python.ops import array_ops\n",
        "print 'Python 2'\n",
        "import tensorflow.contrib.no_such_thing as n\nn.f()\n",
    ],
)
def test_left_alone(code):
    assert migrate_text(code, "a.py").after == code


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        (
            "import tensorflow as tf\ntf.Session()\ntf.contrib.no_such_thing\n",
            "import tpu_estimator_compat.v1 as tf\ntf.Session()\ntf.contrib.no_such_thing\n",
            [(3, "tf.contrib.no_such_thing", Status.UNKNOWN)],
        ),
        (
            "import tensorflow as tf\ntf.estimator.BoostedTreesClassifier()\n",
            "import tensorflow as tf\nfrom tpu_estimator_compat import v1\n"
            "v1.estimator.BoostedTreesClassifier()\n",
            [(3, "tf.estimator.BoostedTreesClassifier", Status.REFUSED)],
        ),
        (
            "from tensorflow.contrib import no_such_thing, tpu\n",
            "from tensorflow.contrib import no_such_thing\n"
            "from tpu_estimator_compat.v1.contrib import tpu\n",
            [(1, "tf.contrib.no_such_thing", Status.UNKNOWN)],
        ),
        (
            "from tensorflow import (  # both\n    keras,  # new\n    estimator,  # old\n)\n",
            "from tensorflow import (  # both\n    keras,  # new\n    estimator,  # old\n)\n",
            [(3, "tf.estimator", Status.BY_HAND)],
        ),
        (
            "import tensorflow as tf\ntf.Session()\nx = (tf.contrib  # why\n  .tpu.TPUConfig)\n",
            "import tpu_estimator_compat.v1 as tf\ntf.Session()\n"
            "x = (tf.contrib  # why\n  .tpu.TPUConfig)\n",
            [],  # it works, with the comment
        ),
        (
            "from tensorflow.contrib.tpu import *\nimport tensorflow as tf\ntf.Session()\n",
            "from tensorflow.contrib.tpu import *\nimport tpu_estimator_compat.v1 as tf\n"
            "tf.Session()\n",
            [(1, "tf.contrib.tpu", Status.BY_HAND)],
        ),
        (
            "import tensorflow as tf\nx = tf.estimator, getattr(tf, 'estimator')\n",
            "import tensorflow as tf\nfrom tpu_estimator_compat import v1\n"
            "x = v1.estimator, getattr(tf, 'estimator')\n",
            [(3, "tf.estimator", Status.BY_HAND)],
        ),
        (
            "import tensorflow as tf\rtf.Session()\r",
            "import tensorflow as tf\rtf.Session()\r",
            [(0, "", Status.BY_HAND), (1, "tf", Status.BY_HAND)],
        ),
    ],
)
def test_what_is_left(before, after, left):
    migration = migrate_text(before, "a.py")
    assert migration.after == after
    assert [(f.line, f.name, f.status) for f in migration.left] == left
    assert all(f.advice for f in migration.left)


def test_lines_of_the_report():
    """Those of the old text in a dry run, and those of the new text after writing."""
    code = "import tensorflow as tf\ntf.estimator.RunConfig\ntf.estimator.BoostedTreesClassifier\n"
    code += "tf.compat.v1.keras.Input(1)\n"
    migration = migrate_text(code, "a.py")
    expected = [(3, Status.REFUSED), (4, Status.DIFFERS)]
    assert [(f.line, f.status) for f in migration.report(written=False)] == expected
    expected = [(4, Status.REFUSED), (5, Status.DIFFERS)]
    assert [(f.line, f.status) for f in migration.report(written=True)] == expected


def test_f_strings():
    code = textwrap.dedent(
        '''
        import tensorflow as tf
        a = f"{tf.estimator.ModeKeys.TRAIN!r:>{width}} {tf.int8}"
        b = f"""
          {tf.estimator.ModeKeys.EVAL}"""
        '''
    )
    migration = migrate_text(code, "a.py")
    rewritten = migration.after.count("v1.estimator")
    by_hand = len([f for f in migration.left if f.status is Status.BY_HAND])
    # Before Python 3.12, where names in f-strings stand is not known for sure.
    assert rewritten + by_hand == 2
    assert migration.after.replace("v1.", "tf.").count("tf.estimator") == 2
