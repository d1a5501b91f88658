import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.functions import eager, functions, traces


@pytest.mark.parametrize("use_resource", [True, False])
def test_variables_without_a_value_are_named(use_resource, graph, session):
    variable = tf.get_variable("variable", [2], use_resource=use_resource)
    assert session.uninitialized() == ["variable"]
    session.run(variable.initializer)
    assert session.uninitialized() == []


def test_uninitialized_variables_say_so(graph, session):
    variable = tf.get_variable("variable", [2])
    report = tf.report_uninitialized_variables()
    assert session.run(report).tolist() == [b"variable"]
    with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value variable"):
        session.run(variable)
    session.run(variable.initializer)
    assert session.run(report).tolist() == []


def test_local_ref_variables_have_no_value_at_first(graph, session):
    local = [tf.GraphKeys.LOCAL_VARIABLES]
    variable = tf.get_variable("variable", [], use_resource=False, collections=local)
    assert session.uninitialized() == ["variable"]
    session.run(variable.initializer)
    assert session.uninitialized() == []


def test_initial_values_that_depend_on_each_other(graph, session):
    first = tf.get_variable("first", initializer=tf.constant([1.0, 2.0]))
    second = tf.get_variable("second", initializer=first * 2)
    session.run(tf.global_variables_initializer())
    np.testing.assert_array_equal(session.run(second), [2.0, 4.0])


def test_only_what_is_fetched_runs(graph, session):
    counter = tf.get_variable("counter", [], tf.int32, tf.zeros_initializer())
    wanted = tf.assign_add(counter, 1)
    tf.assign_add(counter, 100)
    session.run(counter.initializer)
    assert session.run(wanted) == 1
    assert session.run(wanted) == 2
    assert session.run(counter) == 2


def test_tables_and_their_initializers(graph, session):
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a"], [7]), default_value=-1
    )
    found = table.lookup(tf.constant(["a", "b"]))
    session.run(tf.tables_initializer())
    assert session.run(found).tolist() == [7, -1]


def test_bad_feeds_and_closed_sessions(graph, session):
    x = tf.placeholder(tf.float32, [2], name="x")
    with pytest.raises(ValueError, match="Cannot feed value of shape"):
        session.run(x, {x: [1.0]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="You must feed a value for place"):
        session.run(x + 1)
    session.close()
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(tf.constant(1))


def test_saver_writes_and_reads_tf1_checkpoints(graph, session, tmp_path):
    variable = tf.get_variable("scope/variable", [3], initializer=tf.ones_initializer())
    saver = tf.train.Saver(sharded=True)
    session.run(tf.global_variables_initializer())
    path = saver.save(session, str(tmp_path / "model.ckpt"), global_step=3)
    assert tf.train.load_checkpoint(path).get_tensor("scope/variable").tolist() == [1.0] * 3
    session.run(tf.assign(variable, [5.0] * 3))
    saver.restore(session, path)
    assert session.run(variable).tolist() == [1.0] * 3


def test_tensor_eval_in_a_default_session(graph, session):
    with session.as_default():
        assert tf.get_default_session() is session
        assert tf.constant(4).eval() == 4


def test_what_gives_first_values_is_not_kept(graph, session, monkeypatch):
    """TensorFlow has made constants of the values, which would stay."""
    kept = traces.Traces()
    monkeypatch.setattr(functions, "TRACES", kept)
    with graph.as_default():
        weight = tf.get_variable("weight", [3], initializer=tf.zeros_initializer())
        double = weight * 2.0
        initialize = tf.global_variables_initializer()
    session.run(initialize)
    assert not len(kept)
    assert session.run(double).tolist() == [0.0, 0.0, 0.0]
    assert len(kept) == 1


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, tf.string, tf.uint8, tf.complex64])
def test_constants_are_read_as_a_session_reads_them(dtype, graph, session):
    constant = tf.constant([["", "a", "\0b"]] if dtype == tf.string else [[0, 1, 1]], dtype)
    (found,), computed = session.run([[constant], tf.identity(constant)])
    alone = session.run(constant)
    for each in (found, alone):
        assert type(each) is type(computed)
        assert each.dtype == computed.dtype
        np.testing.assert_array_equal(each, computed)
    alone.fill(alone[0, 0])  # it is the caller's
    np.testing.assert_array_equal(session.run(constant), computed)


@pytest.mark.parametrize("use_resource", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.str_])
def test_arrays_of_a_dataset_are_no_constants_of_its_function(
    use_resource, dtype, graph, session, monkeypatch
):
    """TensorFlow would copy them several times while it makes the function."""
    traced = []
    original = functions.function

    def function(call):
        return original(lambda *values: traced.append(tf.get_default_graph()) or call(*values))

    monkeypatch.setattr(functions, "function", function)
    tf.get_variable("variable", [2], use_resource=use_resource)
    values = np.arange(40_000).astype(dtype)
    dataset = tf.data.Dataset.from_tensor_slices(values).batch(40_000)
    [variant] = session.run([dataset._variant_tensor])
    with eager.eager_mode():
        [element] = tf.data.experimental.from_variant(variant, dataset.element_spec)
        assert element.numpy().astype(dtype).tolist() == values.tolist()
    [made] = traced
    assert all(len(op.node_def.SerializeToString()) < 2**16 for op in made.get_operations())
