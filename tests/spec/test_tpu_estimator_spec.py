import functools

import keras
import pytest
import tensorflow as tf

from tpu_estimator_compat.spec import EstimatorSpec, TPUEstimatorSpec

v1 = tf.compat.v1

pytestmark = pytest.mark.usefixtures("graph")


def mean_of(values):
    """A metric_fn of one argument."""
    return {"mean": v1.metrics.mean(values)}


def keras_mean_of(values):
    metric = keras.metrics.Mean()
    metric.update_state(values)
    return {"mean": metric}


class MeanOf:
    def __call__(self, values):
        return mean_of(values)

    def method(self, values):
        return mean_of(values)


@pytest.mark.parametrize(
    "metric_fn",
    [
        mean_of,
        lambda *tensors: mean_of(*tensors),
        functools.partial(lambda scale, values: mean_of(scale * values), 1.0),
        MeanOf(),
        MeanOf().method,
    ],
    ids=["function", "varargs", "partial", "object", "method"],
)
def test_metric_fn_may_be_any_callable(loss, values, metric_fn):
    spec = TPUEstimatorSpec("eval", loss=loss, eval_metrics=(metric_fn, [values]))
    assert list(spec.as_estimator_spec().eval_metric_ops) == ["mean"]


@pytest.mark.parametrize("metric_fn", [mean_of, keras_mean_of])
@pytest.mark.parametrize("tensors", [list, tuple, lambda one: {"values": one[0]}])
def test_metrics_are_computed_in_the_current_graph(loss, values, metric_fn, tensors):
    eval_metrics = (metric_fn, tensors([values]))
    spec = TPUEstimatorSpec("eval", loss=loss, eval_metrics=eval_metrics)
    value, update = spec.as_estimator_spec().eval_metric_ops["mean"]
    with v1.Session() as session:
        session.run(v1.local_variables_initializer())
        session.run(update)
        assert session.run(value) == pytest.approx(3.0)


def test_each_spec_keeps_its_own_host_calls(loss, values):
    # The original kept them on the class: the last spec built gave its metrics to all.
    first = TPUEstimatorSpec("eval", loss=loss, eval_metrics=(mean_of, [values]))
    TPUEstimatorSpec("eval", loss=loss, eval_metrics=(lambda v: {"other": (v, v)}, [values]))
    TPUEstimatorSpec("eval", loss=loss)
    assert list(first.as_estimator_spec().eval_metric_ops) == ["mean"]


def test_replaced_metrics_are_used(loss, values):
    spec = TPUEstimatorSpec("eval", loss=loss)._replace(eval_metrics=(mean_of, [values]))
    assert list(spec.as_estimator_spec().eval_metric_ops) == ["mean"]


def test_plain_spec_carries_the_fields_over(loss, values):
    hooks = [v1.train.SessionRunHook() for _ in range(3)]
    scaffold = v1.train.Scaffold()
    step = tf.no_op()
    spec = TPUEstimatorSpec(
        "train",
        predictions={"v": values},
        loss=loss,
        train_op=step,
        scaffold_fn=lambda: scaffold,
        training_hooks=hooks[:1],
        evaluation_hooks=hooks[1:2],
        prediction_hooks=hooks[2:],
    )
    plain = spec.as_estimator_spec()
    assert type(plain) is EstimatorSpec
    assert (plain.mode, plain.loss, plain.train_op) == ("train", loss, step)
    assert plain.predictions == {"v": values}
    assert plain.scaffold is scaffold
    assert plain.training_hooks + plain.evaluation_hooks + plain.prediction_hooks == tuple(hooks)
    assert plain.eval_metric_ops == {}


def test_scaffold_fn_waits_until_it_is_needed(loss):
    calls = []
    spec = TPUEstimatorSpec("eval", loss=loss, scaffold_fn=lambda: calls.append(1))
    assert calls == []
    spec.as_estimator_spec()
    assert calls == [1]
