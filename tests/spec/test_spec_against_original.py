import pytest

from tpu_estimator_compat import spec

from . import spec_probe

pytestmark = [pytest.mark.slow, pytest.mark.parity]

EXPRESSIONS = [
    "(ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)",
    "EstimatorSpec('train', loss=one, train_op=step)",
    "EstimatorSpec('train', loss=one, train_op=one)",
    "EstimatorSpec('train', loss=one, train_op=variable())",
    "EstimatorSpec('train', loss=one, train_op=[step])",
    "EstimatorSpec('train', loss=one, train_op='step')",
    "EstimatorSpec('train', loss=one, train_op=foreign())",
    "EstimatorSpec('train', loss=one)",
    "EstimatorSpec('train', train_op=step)",
    "EstimatorSpec('eval')",
    "EstimatorSpec('eval', loss=1.0)",
    "EstimatorSpec('eval', loss=pair)",
    "EstimatorSpec('eval', loss=pair[:1])",
    "EstimatorSpec('eval', loss=v1.placeholder(tf.float32))",
    "EstimatorSpec('eval', loss=v1.placeholder(tf.float32, [None]))",
    "EstimatorSpec('eval', loss=v1.placeholder(tf.float32, [2, None]))",
    "EstimatorSpec('eval', loss=foreign())",
    "EstimatorSpec('eval', pair, one)",
    "EstimatorSpec('eval', {'a': pair, 'b': one}, one)",
    "EstimatorSpec('eval', loss=one, predictions=[pair])",
    "EstimatorSpec('eval', loss=one, predictions={'a': 1})",
    "EstimatorSpec('eval', loss=one, predictions=foreign())",
    "EstimatorSpec('eval', loss=one, predictions={'a': foreign()})",
    "EstimatorSpec(None)",
    "EstimatorSpec(None, pair, pair[:1], step)",
    "EstimatorSpec('train', loss=variable(), train_op=step)",
    "EstimatorSpec('infer')",
    "EstimatorSpec('infer', pair)",
    "EstimatorSpec('infer', {'a': pair})",
    "EstimatorSpec('infer', {'a': pair}, export_outputs=[1])",
    "EstimatorSpec('infer', {'a': pair}, export_outputs={'b': pair})",
    "EstimatorSpec('eval', loss=one, export_outputs={'b': pair})",
    "EstimatorSpec('eval', loss=one, eval_metric_ops={'m': (one, step)})",
    "EstimatorSpec('eval', loss=one, eval_metric_ops={'m': v1.metrics.mean(pair)})",
    "EstimatorSpec('eval', loss=one, eval_metric_ops={'m': [one, step]})",
    "EstimatorSpec('eval', loss=one, eval_metric_ops={'m': one})",
    "EstimatorSpec('eval', loss=one, eval_metric_ops=[one, step])",
    "EstimatorSpec('eval', loss=one, eval_metric_ops={'m': (foreign(), step)})",
    "EstimatorSpec('eval', loss=one, eval_metric_ops={'m': tf.keras.metrics.Mean(name='mine')})",
    "EstimatorSpec('eval', loss=one, training_hooks=[hook()], training_chief_hooks=[hook()])",
    "EstimatorSpec('eval', loss=one, evaluation_hooks=['hook'])",
    "EstimatorSpec('eval', loss=one, prediction_hooks=['hook'])",
    "EstimatorSpec('eval', loss=one, training_chief_hooks=['hook'])",
    "EstimatorSpec('eval', loss=one, scaffold='scaffold')",
    "EstimatorSpec('eval', loss=one)._replace(loss=pair[0])",
    "EstimatorSpec('eval', loss=one)._replace(loss=pair)",
    "EstimatorSpec('eval', loss=one)._replace(mode='infer')",
    "EstimatorSpec('eval', loss=one)._replace(no_such_field=1)",
    "TPUEstimatorSpec('train', loss=one, train_op=step)",
    "TPUEstimatorSpec('train', loss=one)",
    "TPUEstimatorSpec('train', train_op=step, training_hooks=['hook'])",
    "TPUEstimatorSpec('eval', loss=pair[:1])",
    "TPUEstimatorSpec('infer', {'a': pair})",
    "TPUEstimatorSpec('eval', loss=one, eval_metrics=(metric_fn, [pair, pair]))",
    "TPUEstimatorSpec('eval', loss=one, eval_metrics=[metric_fn, (pair, pair)])",
    "TPUEstimatorSpec('eval', loss=one, eval_metrics=(metric_fn, [pair]))",
    "TPUEstimatorSpec('eval', loss=one, eval_metrics=(metric_fn, {'labels': pair}))",
    "TPUEstimatorSpec('eval', loss=one, eval_metrics=metric_fn)",
    "TPUEstimatorSpec('eval', loss=one, eval_metrics=(metric_fn,))",
    "TPUEstimatorSpec('eval', loss=one, eval_metrics=('metric_fn', [pair]))",
    "TPUEstimatorSpec('eval', loss=one, eval_metrics=(metric_fn, pair))",
    "TPUEstimatorSpec('eval', loss=one, host_call=(summing_host_call, [pair, pair]))",
    "TPUEstimatorSpec('eval', loss=one, host_call=(lambda *values: values, [pair, pair]))",
    "TPUEstimatorSpec('eval', loss=one, host_call=())",
    "TPUEstimatorSpec('eval', loss=one, host_call=(partial(metric_fn, pair), [pair]))",
    "TPUEstimatorSpec('eval', loss=one, host_call=(partial(metric_fn, pair), [pair, pair]))",
    "TPUEstimatorSpec('eval', loss=one, evaluation_hooks=[hook()]).as_estimator_spec()",
    "TPUEstimatorSpec('eval', loss=one, eval_metrics=(metric_fn, [pair, pair]), "
    "host_call=(summing_host_call, [pair])).as_estimator_spec()",
    "TPUEstimatorSpec('eval', loss=one, eval_metrics=(metric_fn, {'labels': pair}))"
    ".as_estimator_spec()",
    "TPUEstimatorSpec('eval', loss=one, scaffold_fn=v1.train.Scaffold).as_estimator_spec()",
    "TPUEstimatorSpec('eval', loss=one, scaffold_fn=lambda: 'scaffold').as_estimator_spec()",
    "TPUEstimatorSpec('infer', pair).as_estimator_spec()",
    "TPUEstimatorSpec('eval', loss=one)._replace(mode='infer')",
    "WarmStartSettings('/ckpt')",
    "WarmStartSettings('')",
    "WarmStartSettings('/ckpt', None, None, {'a': 'b'})",
    "default_warm_start_settings(None)",
    "default_warm_start_settings('/ckpt')",
    "default_warm_start_settings('')",
    "default_warm_start_settings(5)",
    "default_warm_start_settings(WarmStartSettings('/ckpt', ['w']))",
]


@pytest.fixture(scope="module")
def originals_reports(original):
    return original.run(spec_probe.__file__, given=EXPRESSIONS)


@pytest.mark.parametrize(
    "number", range(len(EXPRESSIONS)), ids=[f"{i}:{text}" for i, text in enumerate(EXPRESSIONS)]
)
def test_same_outcome_as_the_original(number, originals_reports):
    names = {name: getattr(spec, name) for name in spec_probe.ORIGINAL}
    original, ours = originals_reports[number], spec_probe.report(names, EXPRESSIONS[number])
    if "error" not in original:
        assert ours == original
        return
    assert ours["error"] == original["error"]
    assert original["message"].rstrip(".") in ours["message"]


def test_the_cases_hold_good_specs_and_bad_ones(originals_reports):
    errors = sum("error" in report for report in originals_reports)
    assert errors > 30
    assert len(EXPRESSIONS) - errors > 30
