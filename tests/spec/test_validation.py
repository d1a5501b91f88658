import pytest
import tensorflow as tf

from tpu_estimator_compat.spec import EstimatorSpec

v1 = tf.compat.v1


pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def foreign():
    with tf.Graph().as_default():
        return tf.constant(1.0, name="foreign")


@pytest.mark.parametrize(
    ("mode", "given", "missing"),
    [
        ("train", {"loss": 1.0}, "Missing train_op"),
        ("train", {}, "Missing train_op"),
        ("eval", {}, "Missing loss"),
        ("infer", {}, "Missing predictions"),
    ],
)
def test_each_mode_needs_its_fields(mode, given, missing):
    tensors = {name: tf.constant(value) for name, value in given.items()}
    with pytest.raises(ValueError, match=f"{missing}\\. A spec with mode='{mode}'"):
        EstimatorSpec(mode, **tensors)


def test_loss_of_one_element_becomes_a_scalar():
    assert EstimatorSpec("eval", loss=tf.constant([2.0])).loss.shape == ()
    unknown = v1.placeholder(tf.float32)
    assert EstimatorSpec("eval", loss=unknown).loss is unknown


def test_loss_per_example_is_refused():
    with pytest.raises(ValueError, match=r"Loss must be scalar, given: .*Average or sum"):
        EstimatorSpec("eval", loss=tf.constant([1.0, 2.0]))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("loss", 1.0, "loss must be Tensor, given: 1.0"),
        ("train_op", "step", "train_op must be Operation or Tensor, given: step"),
        ("predictions", [1], r"predictions must be Tensor, given: \[1\]"),
        ("predictions", {"p": 3}, r"predictions\[p\] must be Tensor, given: 3"),
        ("training_hooks", ["h"], "All hooks must be SessionRunHook instances, given: h"),
        ("evaluation_hooks", [1], "All hooks must be SessionRunHook instances, given: 1"),
        ("prediction_hooks", [1], "All hooks must be SessionRunHook instances, given: 1"),
        ("training_chief_hooks", [1], "All hooks must be SessionRunHook instances, given: 1"),
        ("scaffold", "s", r"scaffold must be tf.train.Scaffold. Given: s"),
        ("eval_metric_ops", [1], r"eval_metric_ops must be a dict, given: \[1\]"),
        ("eval_metric_ops", {"m": 1}, r"must be \(metric_value, update_op\) tuples, given: 1 for"),
        ("eval_metric_ops", {"m": (1, 2, 3)}, "tuples, given: .* for key: m"),
    ],
)
def test_wrong_types_are_refused(loss, field, value, message):
    with pytest.raises(TypeError, match=message):
        EstimatorSpec(**{"mode": "eval", "loss": loss, field: value})


@pytest.mark.parametrize(
    ("field", "wrap", "words"),
    [
        ("loss", lambda t: t, 'loss with "foreign:0"'),
        ("train_op", lambda t: t.op, 'train_op with "foreign"'),
        ("predictions", lambda t: t, 'prediction values with "foreign:0"'),
        ("predictions", lambda t: {"p": t}, 'prediction values with "p: foreign:0"'),
        ("eval_metric_ops", lambda t: {"m": (t, t.op)}, 'eval_metric_ops with "m: foreign:0"'),
    ],
)
def test_other_graphs_are_refused(loss, foreign, field, wrap, words):
    with pytest.raises(ValueError, match=f"{words} must be from the default graph"):
        EstimatorSpec(**{"mode": "eval", "loss": loss, field: wrap(foreign)})


def test_numbers_are_no_metric_values(loss):
    with pytest.raises(ValueError, match=r'eval_metric_ops with "m: 1.0" must be from the default'):
        EstimatorSpec("eval", loss=loss, eval_metric_ops={"m": (1.0, tf.no_op())})


def test_variable_as_train_op_becomes_its_op(loss):
    variable = v1.get_variable("v", [])
    assert EstimatorSpec("train", loss=loss, train_op=variable).train_op is variable.op


def test_metric_pairs_are_kept(loss):
    pair = v1.metrics.mean(loss)
    assert EstimatorSpec("eval", loss=loss, eval_metric_ops={"m": pair}).eval_metric_ops == {
        "m": pair
    }
