import ast

from tpu_estimator_compat.old_names.legacy.references import references


def test_a_name_that_is_rebound_stands_for_both():
    code = "import tensorflow as tf\ntf = tf.compat.v1\ntf.Session()"
    paths = {r.path for r in references(ast.parse(code))}
    assert {"tensorflow.Session", "tensorflow.compat.v1.Session"} <= paths
