import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys, is_keras_metric, keras_metric_pair

v1 = tf.compat.v1

LABELS = np.array([[0, 1, 1, 0], [1, 1, 0, 0]], np.int32)
SCORES = np.array(
    [[[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]], [[0.1, 0.9]] * 3 + [[0.8, 0.2]]], np.float32
)


def run_batches(pair, feeds):
    value, update = pair
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        for feed in feeds:
            session.run(update, feed)
        return session.run(value)


def mean_on_graph(library):
    metric = library.metrics.Mean(name="average")
    values = v1.placeholder(tf.float32, [None])
    metric.update_state(values)
    return metric, values


@pytest.fixture(params=[keras, tf_keras], ids=["keras3", "tf_keras"])
def library(request):
    return request.param


def test_mean_accumulates_over_batches(graph, library):
    metric, values = mean_on_graph(library)
    result = run_batches(keras_metric_pair(metric), [{values: [1.0, 2.0]}, {values: [6.0]}])
    assert result == pytest.approx(3.0)


def test_auc_agrees_with_the_eager_metric(library):
    eager = library.metrics.AUC()
    eager.update_state(LABELS.ravel(), SCORES[..., 1].ravel())
    expected = float(eager.result())
    assert 0 < expected < 1
    with tf.Graph().as_default():
        metric = library.metrics.AUC()
        labels, scores = v1.placeholder(tf.int32, [None]), v1.placeholder(tf.float32, [None])
        metric.update_state(labels, scores)
        feeds = [{labels: y, scores: p[:, 1]} for y, p in zip(LABELS, SCORES, strict=True)]
        assert run_batches(keras_metric_pair(metric), feeds) == pytest.approx(expected)


def test_result_is_zero_before_the_first_update(graph, library):
    metric, _ = mean_on_graph(library)
    assert run_batches(keras_metric_pair(metric), []) == 0


def test_all_updates_of_a_step_count_each_once(graph, library):
    metric = library.metrics.Mean()
    parts = [v1.placeholder(tf.float32, []) for _ in range(5)]
    for part in parts:
        metric.update_state(part)
    pair = keras_metric_pair(metric)
    feeds = [dict(zip(parts, range(5), strict=True)), dict(zip(parts, range(5, 10), strict=True))]
    # Several runs: unordered updates would lose some of them only now and then.
    assert [run_batches(pair, feeds) for _ in range(20)] == [pytest.approx(4.5)] * 20


def test_update_inside_a_function_is_found(graph, library):
    metric = library.metrics.Mean()
    values = v1.placeholder(tf.float32, [None])
    metric.update_state([0.0])

    @tf.function
    def update(batch):
        for variable in metric.variables:
            tf_variable = variable if isinstance(variable, tf.Variable) else variable.value
            tf_variable.assign_add(tf.reduce_sum(batch))

    update(values)
    # total = 0 + 6, count = 1 + 6: the function's writes are in the update too.
    assert run_batches(keras_metric_pair(metric), [{values: [6.0]}]) == pytest.approx(6 / 7)


def test_reading_function_is_no_update(graph, library):
    metric = library.metrics.Mean()
    first = metric.variables[0]
    tf_variable = first if isinstance(first, tf.Variable) else first.value
    tf.function(lambda: tf_variable + 1.0)()
    with pytest.raises(ValueError, match="Please call update_state"):
        keras_metric_pair(metric)


def test_variables_are_local_metric_variables_only(graph, library):
    weight = v1.get_variable("weight", [], use_resource=True)
    metric, _ = mean_on_graph(library)
    keras_metric_pair(metric)
    local = [v.name for v in graph.get_collection(v1.GraphKeys.LOCAL_VARIABLES)]
    assert len(local) == len(metric.variables) == 2
    assert [v.name for v in graph.get_collection(v1.GraphKeys.METRIC_VARIABLES)] == local
    assert [v.name for v in v1.global_variables()] == [weight.name]
    assert [v.name for v in v1.trainable_variables()] == [weight.name]


def test_asking_twice_registers_variables_once(graph, library):
    metric, values = mean_on_graph(library)
    keras_metric_pair(metric)
    pair = keras_metric_pair(metric)
    assert len(graph.get_collection(v1.GraphKeys.LOCAL_VARIABLES)) == 2
    assert run_batches(pair, [{values: [2.0, 4.0]}]) == pytest.approx(3.0)


def test_restore_by_a_saver_is_no_update(graph, library, tmp_path):
    metric, values = mean_on_graph(library)
    variables = [v if isinstance(v, tf.Variable) else v.value for v in metric.variables]
    v1.train.Saver(variables)
    # A restore among the updates would fail here: there is no checkpoint to read.
    assert run_batches(keras_metric_pair(metric), [{values: [5.0]}]) == pytest.approx(5.0)


def test_unknown_update_is_refused_with_the_original_words(graph, library):
    metric = library.metrics.Mean(name="average")
    message = r'Please call update_state\(...\) on the "average" metric'
    with pytest.raises(ValueError, match=message):
        keras_metric_pair(metric)


def test_metric_of_another_graph_is_refused(library):
    with tf.Graph().as_default():
        metric, _ = mean_on_graph(library)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="must be from the default graph"):
        keras_metric_pair(metric)


def test_eager_metric_is_refused_in_a_graph(library):
    metric = library.metrics.Mean()
    metric.update_state([1.0])
    with tf.Graph().as_default(), pytest.raises(ValueError, match="must be from the default graph"):
        keras_metric_pair(metric)


def test_spec_turns_metrics_into_pairs_and_leaves_the_users_dict(graph, library):
    metric, values = mean_on_graph(library)
    given = {"average": metric}
    spec = EstimatorSpec(ModeKeys.EVAL, loss=tf.constant(1.0), eval_metric_ops=given)
    assert given == {"average": metric}
    assert run_batches(spec.eval_metric_ops["average"], [{values: [7.0]}]) == pytest.approx(7.0)


def test_only_metrics_are_metrics(graph, library):
    assert is_keras_metric(library.metrics.Mean())
    assert not is_keras_metric((tf.constant(1.0), tf.no_op()))
    assert not is_keras_metric(None)
