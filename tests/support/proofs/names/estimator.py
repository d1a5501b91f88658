import tensorflow as tf2
import tensorflow.compat.v1 as tf
import tf_keras

from support.legacy_models import Fetching
from support.proofs import proves
from tpu_estimator_compat import estimator as estimators


def model_fn(features, labels, mode):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean((features * weight - labels) ** 2)
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    predictions = {"y": features * weight}
    return estimators.EstimatorSpec(mode, predictions, loss, train_op)


def input_fn():
    return tf2.data.Dataset.from_tensors(([1.0], [2.0])).repeat()


def trained(estimator_class, folder, hooks=()):
    estimator = estimator_class(model_fn, str(folder))
    estimator.train(input_fn, hooks=list(hooks), steps=3)
    assert estimator.get_variable_value("weight") > 0.5
    return estimator


@proves("tf.contrib.data.CheckpointInputPipelineHook")
def saves_the_position_of_the_input(hook, tmp_path):
    seeing = Fetching("IteratorGetNext:0")

    def counting():
        return tf2.data.Dataset.range(9).map(lambda i: ([tf.cast(i, tf.float32)], [2.0]))

    for _ in range(2):
        estimator = estimators.Estimator(model_fn, str(tmp_path))
        estimator.train(counting, hooks=[hook(estimator), seeing], steps=3)
    assert [int(each[0]) for each in seeing.seen] == [0, 1, 2, 3, 4, 5]
    assert (tmp_path / "checkpoint_input").exists()


@proves("tensorflow_estimator")
def is_the_package(package, tmp_path):
    trained(package.estimator.Estimator, tmp_path)


CONTRIB = "tf.contrib.estimator"


@proves(f"{CONTRIB}.read_eval_metrics")
def reads_metrics(read_eval_metrics, tmp_path):
    estimator = trained(estimators.Estimator, tmp_path)
    loss = estimator.evaluate(input_fn, steps=1)["loss"]
    [(step, metrics)] = read_eval_metrics(estimator.eval_dir()).items()
    assert step == 3
    assert metrics["loss"] == loss


@proves("tf.keras.estimator.model_to_estimator")
def makes_estimators_of_keras_models(make, tmp_path):
    model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", loss="mse")
    made = make(model, model_dir=str(tmp_path))

    def keras_input_fn():
        return tf2.data.Dataset.from_tensors(([[1.0, 2.0]], [[3.0]]))

    before = made.evaluate(keras_input_fn)
    made.train(keras_input_fn)
    after = made.evaluate(keras_input_fn)
    assert after["loss"] < before["loss"]
    assert after["global_step"] == 1
