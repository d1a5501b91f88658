import pytest
import tensorflow as tf

from tpu_estimator_compat.spec import EstimatorSpec

v1 = tf.compat.v1

pytestmark = pytest.mark.usefixtures("graph")


def test_predictions_are_the_specs_own(loss):
    predictions = {"p": loss}
    spec = EstimatorSpec("eval", predictions, loss)
    predictions["q"] = loss
    assert spec.predictions == {"p": loss}


def test_eager_values_are_fine_outside_a_graph():
    with tf.init_scope():
        loss = tf.constant(2.0)
        assert EstimatorSpec("eval", loss=loss).loss is loss


def test_numbers_are_no_metric_values(loss):
    with pytest.raises(ValueError, match=r'eval_metric_ops with "m: 1.0" must be from the default'):
        EstimatorSpec("eval", loss=loss, eval_metric_ops={"m": (1.0, tf.no_op())})


def test_fields_that_a_spec_does_not_have_are_told_of(loss, caplog):
    assert EstimatorSpec("eval", loss=loss)._replace(no_such_field=1).loss is loss
    assert "EstimatorSpec has no fields ['no_such_field']: ignored." in caplog.text
