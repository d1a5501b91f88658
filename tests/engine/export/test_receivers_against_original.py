import pytest

from tpu_estimator_compat.estimator import export

from . import receivers_probe

pytestmark = [pytest.mark.slow, pytest.mark.parity]

EXPRESSIONS = [
    "export.ServingInputReceiver(x, x)",
    "export.ServingInputReceiver({'a': x, 1: sparse, 'c': ragged}, {'a': x})",
    "export.ServingInputReceiver(x, x, {'other': x, 'named': {'n': x}})",
    "export.ServingInputReceiver(None, x)",
    "export.ServingInputReceiver(x, None)",
    "export.ServingInputReceiver({'a': 1.0}, x)",
    "export.ServingInputReceiver(np.ones(2), x)",
    "export.ServingInputReceiver({1.5: x}, x)",
    "export.ServingInputReceiver(x, {1: x})",
    "export.ServingInputReceiver(x, [x])",
    "export.ServingInputReceiver(x, x, [x])",
    "export.ServingInputReceiver(x, x, {'other': 1})",
    "export.TensorServingInputReceiver(x, x)",
    "export.TensorServingInputReceiver(sparse, {'s': sparse}, {'other': x})",
    "export.TensorServingInputReceiver(None, x)",
    "export.TensorServingInputReceiver({'x': x}, x)",
    "export.UnsupervisedInputReceiver(x, x)",
    "export.SupervisedInputReceiver(x, {'l': x}, x)",
    "export.SupervisedInputReceiver({'a': x}, x, {'a': x})",
    "export.SupervisedInputReceiver(x, None, x)",
    "export.SupervisedInputReceiver(x, {'l': 'm'}, x)",
    "export.build_raw_serving_input_receiver_fn({'a': x})()",
    "export.build_raw_serving_input_receiver_fn({'a': x, 'b': eager}, 4)()",
    "export.build_raw_serving_input_receiver_fn({'a': tf.constant(1.0)})()",
    "export.build_parsing_serving_input_receiver_fn({'a': tf.FixedLenFeature([2], tf.int64)})()",
    "export.build_parsing_serving_input_receiver_fn({'a': tf.VarLenFeature(tf.int64)}, 3)()",
    "export.build_raw_supervised_input_receiver_fn(x, x)()",
    "export.build_raw_supervised_input_receiver_fn({'a': x}, {'b': eager}, 5)()",
    "export.build_raw_supervised_input_receiver_fn({'a': x}, x)()",
    "export.build_raw_supervised_input_receiver_fn({'a': x}, {'a': x})()",
    "export.build_raw_supervised_input_receiver_fn({'label': x}, x)()",
    "export.build_supervised_input_receiver_fn_from_input_fn("
    "lambda n: tf.data.Dataset.from_tensors(({'a': tf.zeros([n, 2])}, tf.zeros([n]))), n=3)()",
    "export.build_supervised_input_receiver_fn_from_input_fn("
    "lambda: (tf.zeros([3, 2], name='f'), tf.zeros([3], name='l')))()",
]


@pytest.fixture(scope="module")
def originals(original):
    return original.run(receivers_probe.__file__, given=EXPRESSIONS)


@pytest.mark.parametrize("number", range(len(EXPRESSIONS)), ids=EXPRESSIONS)
def test_same_outcome(number, originals):
    original, ours = originals[number], receivers_probe.report(export, EXPRESSIONS[number])
    if "error" not in original:
        assert ours == original
        return
    assert ours["error"] == original["error"]
    assert original["message"].rstrip(".") in ours["message"]
