import importlib

import tensorflow.compat.v1 as tf

from support.proofs import below, evaluate, graph, proves

FRAMEWORK = "tf.contrib.framework"


@proves("tf.contrib.framework")
def restores(framework, tmp_path):
    with graph(), tf.Session() as session:
        framework.model_variable("v", initializer=tf.constant(2.0))
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    assert framework.list_variables(path) == [("v", [])]
    assert framework.load_variable(path, "v") == 2.0
    with graph(), tf.Session() as session:
        variable = framework.model_variable("v", initializer=tf.constant(0.0))
        framework.assign_from_checkpoint_fn(path, framework.get_variables_to_restore())(session)
        assert session.run(variable) == 2.0
        assert [v.op.name for v in framework.get_variables_by_name("v")] == ["v"]
        with tf.name_scope("outer"):
            assert framework.get_name_scope() == "outer"


@proves(*below(FRAMEWORK, "python.framework.tensor_util"))
def checks(module):
    import pytest

    def build(expected):
        return module.with_shape(expected, tf.placeholder_with_default([1.0, 2.0], [None]))

    assert evaluate(lambda: build([2])).tolist() == [1, 2]
    with graph():
        assert build([2]).shape == [2]
        with pytest.raises(ValueError, match="Invalid shape"):
            module.with_shape([3], tf.constant([1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        evaluate(lambda: build([3]))
    assert evaluate(lambda: module.with_same_shape(tf.ones([1]), tf.zeros([1]))) == [0]


@proves(*below(FRAMEWORK, "python.ops.script_ops"))
def calls_python(module):
    def build():
        return module.py_func(
            lambda a, b: {"sum": a + b},
            [tf.constant(1.0)],
            {"b": tf.constant(2.0)},
            {"sum": tf.float32},
            {"sum": []},
        )

    assert evaluate(build) == {"sum": 3.0}


@proves(*below(FRAMEWORK, "python.ops.arg_scope"))
def scopes(arg_scope):
    module = importlib.import_module(
        "tpu_estimator_compat.v1.contrib.framework.python.ops.arg_scope"
    )
    assert module.arg_scope is arg_scope

    @module.add_arg_scope
    def function(x, y=1):
        return x + y

    with arg_scope([function], y=5):
        assert function(1) == 6
    assert function(1) == 2


@proves(*below(FRAMEWORK, "python.ops.variables"))
def has_variables(module):
    with graph():
        module.model_variable("a", [1])
        module.local_variable(tf.zeros([1]), name="b")
        assert [v.op.name for v in module.get_model_variables()] == ["a"]
        assert [v.op.name for v in module.get_local_variables()] == ["b"]
