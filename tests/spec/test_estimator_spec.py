import pytest
import tensorflow as tf

from tpu_estimator_compat.spec import EstimatorSpec

v1 = tf.compat.v1


pytestmark = pytest.mark.usefixtures("graph")


class Hook(v1.train.SessionRunHook):
    """A hook that does nothing."""


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


def test_predictions_are_the_specs_own(loss):
    predictions = {"p": loss}
    spec = EstimatorSpec("eval", predictions, loss)
    predictions["q"] = loss
    assert spec.predictions == {"p": loss}


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
