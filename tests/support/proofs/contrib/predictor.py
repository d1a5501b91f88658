import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from support.proofs import proves
from tpu_estimator_compat import estimator as estimators

CONTRIB = "tf.contrib"


def trained(folder):
    def model_fn(features, labels, mode):
        del labels
        weight = tf.get_variable("w", initializer=3.0)
        loss = weight * 0.0
        step = tf.train.get_global_step()
        train_op = step.assign_add(1)
        predictions = {"y": features["x"] * weight}
        return estimators.EstimatorSpec(mode, predictions, loss, train_op)

    estimator = estimators.Estimator(model_fn, str(folder))
    estimator.train(lambda: tf2.data.Dataset.from_tensors(({"x": [1.0]}, [1.0])), steps=1)
    return estimator


def receiver():
    x = tf.placeholder(tf.float32, [None], "x")
    return estimators.export.ServingInputReceiver({"x": x}, {"x": x})


@proves(f"{CONTRIB}.predictor.from_saved_model")
def predicts(from_saved_model, tmp_path):
    path = trained(tmp_path / "model").export_saved_model(str(tmp_path / "export"), receiver)
    predictor = from_saved_model(path.decode())
    assert predictor({"x": [1.0, 2.0]})["y"].tolist() == [3.0, 6.0]
    assert list(predictor.feed_tensors) == ["x"]
    with pytest.raises(ValueError, match="unexpected keys"):
        predictor({"z": [1.0]})
    with pytest.raises(ValueError, match="Available signatures"):
        from_saved_model(path.decode(), "missing")
    with pytest.raises(ValueError, match="at most one"):
        from_saved_model(path.decode(), "a", input_names={}, output_names={})
    named = from_saved_model(path.decode(), input_names={"in": "x:0"}, output_names={"w": "w:0"})
    assert list(named.fetch_tensors) == ["w"]


@proves(f"{CONTRIB}.predictor.from_estimator")
def predicts_from_estimators(from_estimator, tmp_path):
    predictor = from_estimator(trained(tmp_path), receiver)
    assert predictor({"x": [1.0, 2.0]})["y"].tolist() == [3.0, 6.0]
    assert predictor.session.graph is predictor.graph
