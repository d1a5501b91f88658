"""EstimatorSpec: what each mode needs, what is refused, and what is filled in."""

import pytest
import tensorflow as tf

from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as built:
        yield built


@pytest.fixture
def loss():
    return tf.constant(1.0)


@pytest.fixture
def foreign():
    """A tensor of another graph."""
    with tf.Graph().as_default():
        return tf.constant(1.0, name="foreign")


class Hook(v1.train.SessionRunHook):
    """A hook that does nothing."""


def test_modes_are_tensorflows():
    assert (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT) == ("train", "eval", "infer")


def test_fields_are_in_the_originals_order():
    assert EstimatorSpec._fields == (
        "mode",
        "predictions",
        "loss",
        "train_op",
        "eval_metric_ops",
        "export_outputs",
        "training_chief_hooks",
        "training_hooks",
        "scaffold",
        "evaluation_hooks",
        "prediction_hooks",
    )


def test_training_spec_is_filled_in(loss):
    step = tf.no_op()
    hook = Hook()
    spec = EstimatorSpec("train", None, loss, step, training_hooks=[hook])
    assert (spec.mode, spec.loss, spec.train_op) == ("train", loss, step)
    assert (spec.predictions, spec.eval_metric_ops, spec.export_outputs) == ({}, {}, None)
    assert spec.training_hooks == (hook,)
    assert spec.training_chief_hooks == spec.evaluation_hooks == spec.prediction_hooks == ()
    assert isinstance(spec.scaffold, v1.train.Scaffold)


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


def test_predictions_are_the_specs_own(loss):
    predictions = {"p": loss}
    spec = EstimatorSpec("eval", predictions, loss)
    predictions["q"] = loss
    assert spec.predictions == {"p": loss}


def test_variable_as_train_op_becomes_its_op(loss):
    variable = v1.get_variable("v", [])
    assert EstimatorSpec("train", loss=loss, train_op=variable).train_op is variable.op


def test_metric_pairs_are_kept(loss):
    pair = v1.metrics.mean(loss)
    assert EstimatorSpec("eval", loss=loss, eval_metric_ops={"m": pair}).eval_metric_ops == {
        "m": pair
    }


def test_predicting_exports_the_predictions_by_default(loss):
    spec = EstimatorSpec("infer", {"p": loss})
    assert list(spec.export_outputs) == ["serving_default"]
    assert spec.export_outputs["serving_default"].outputs == {"p": loss}


def test_sole_export_output_is_the_default_one(loss):
    output = EstimatorSpec("infer", {"p": loss}).export_outputs["serving_default"]
    spec = EstimatorSpec("infer", {"p": loss}, export_outputs={"mine": output})
    assert spec.export_outputs == {"mine": output, "serving_default": output}


def test_bad_export_outputs_are_refused_in_prediction_alone(loss):
    with pytest.raises(TypeError, match="`export_outputs` must be dict"):
        EstimatorSpec("infer", {"p": loss}, export_outputs=[1])
    assert EstimatorSpec("eval", loss=loss, export_outputs=[1]).export_outputs == [1]


def test_replace_validates(loss):
    spec = EstimatorSpec("eval", loss=loss)
    other = tf.constant(2.0)
    assert spec._replace(loss=other).loss is other
    assert spec._replace(mode="eval").mode == "eval"
    with pytest.raises(TypeError, match="loss must be Tensor"):
        spec._replace(loss=3.0)


def test_replace_cannot_change_the_mode(loss):
    with pytest.raises(ValueError, match=r"mode of EstimatorSpec cannot be changed\. Got 'infer'"):
        EstimatorSpec("eval", loss=loss)._replace(mode="infer")


def test_replace_ignores_unknown_fields_as_the_original_did(loss):
    spec = EstimatorSpec("eval", loss=loss)
    assert spec._replace(no_such_field=1) == spec


def test_eager_values_are_fine_outside_a_graph():
    with tf.init_scope():
        loss = tf.constant(2.0)
        assert EstimatorSpec("eval", loss=loss).loss is loss
