import numpy as np
import pandas
import tensorflow as tf2
import tensorflow.compat.v1 as tf
import tf_keras

from support.legacy_models import Fetching
from support.proofs import below, proves
from tpu_estimator_compat import estimator as estimators

DEEP = "tensorflow_estimator.python.estimator"


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


@proves(f"{DEEP}.estimator.EstimatorV2")
def is_the_estimator(estimator, tmp_path):
    trained(estimator, tmp_path)


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


@proves("tf.estimator.inputs")
def has_inputs(module):
    x = np.arange(5.0)
    made = module.numpy_input_fn({"x": x}, x * 2, batch_size=4, num_epochs=2, shuffle=False)
    batches = list(made().as_numpy_iterator())
    assert [features["x"].tolist() for features, _ in batches] == [
        [0, 1, 2, 3],
        [4, 0, 1, 2],
        [3, 4],
    ]
    assert batches[1][1].tolist() == [8, 0, 2, 4]
    frame = pandas.DataFrame({"a": [1, 2, 3]})
    made = module.pandas_input_fn(frame, frame["a"] * 10, batch_size=2, shuffle=False)
    assert [labels.tolist() for _, labels in made().as_numpy_iterator()] == [[10, 20], [30]]


CONTRIB = "tf.contrib.estimator"


@proves(f"{CONTRIB}.InMemoryEvaluatorHook")
def evaluates_in_memory(hook, tmp_path):
    estimator = estimators.Estimator(model_fn, str(tmp_path))
    estimator.train(input_fn, hooks=[hook(estimator, input_fn, steps=1, every_n_iter=2)], steps=3)
    assert list(tmp_path.glob("eval/*tfevents*"))


@proves(
    *below(
        CONTRIB,
        "stop_if_higher_hook stop_if_lower_hook stop_if_no_decrease_hook stop_if_no_increase_hook",
    )
)
def stops_early(make_hook, tmp_path):
    estimator = estimators.Estimator(model_fn, str(tmp_path))
    every_step = {"run_every_secs": None, "run_every_steps": 1}
    never = estimators.experimental.make_early_stopping_hook(estimator, lambda: False, **every_step)
    for _ in range(2):
        estimator.train(input_fn, hooks=[never], steps=3)
        estimator.evaluate(input_fn, steps=1)
    # Losses between 4 and 0 that decrease: only this rule finds no fault with them.
    decreases = make_hook.__name__ == "stop_if_no_decrease_hook"
    limit = {"stop_if_higher_hook": 0.0, "stop_if_lower_hook": 4.0}.get(make_hook.__name__, 1)
    hook = make_hook(estimator, "loss", limit, min_steps=0, **every_step)
    estimator.train(input_fn, hooks=[hook], steps=5)
    stopped = estimator.get_variable_value("global_step") < 11
    assert stopped == (not decreases)


@proves(f"{CONTRIB}.make_early_stopping_hook")
def stops_when_told(make_hook, tmp_path):
    estimator = estimators.Estimator(model_fn, str(tmp_path))
    hook = make_hook(estimator, lambda: True, run_every_secs=None, run_every_steps=1)
    estimator.train(input_fn, hooks=[hook], steps=5)
    assert estimator.get_variable_value("global_step") < 5


@proves(f"{CONTRIB}.make_stop_at_checkpoint_step_hook")
def stops_at_checkpoints(make_hook, tmp_path):
    estimator = trained(estimators.Estimator, tmp_path)
    hook = make_hook(estimator, last_step=3)
    estimator.train(input_fn, hooks=[hook], steps=5)
    assert estimator.get_variable_value("global_step") <= 4


@proves(f"{CONTRIB}.read_eval_metrics")
def reads_metrics(read_eval_metrics, tmp_path):
    estimator = trained(estimators.Estimator, tmp_path)
    loss = estimator.evaluate(input_fn, steps=1)["loss"]
    [(step, metrics)] = read_eval_metrics(estimator.eval_dir()).items()
    assert step == 3
    assert metrics["loss"] == loss


@proves(f"{CONTRIB}.build_raw_supervised_input_receiver_fn")
def receives_supervised(build):
    with tf.Graph().as_default():
        spec = tf.placeholder(tf.float32, [None], "x")
        receiver = build({"x": spec}, tf.placeholder(tf.int64, [None], "labels"))()
    assert set(receiver.receiver_tensors) == {"x", "label"}


@proves(f"{CONTRIB}.build_supervised_input_receiver_fn_from_input_fn")
def receives_as_input_fn(build):
    with tf.Graph().as_default():
        receiver = build(input_fn)()
    assert receiver.receiver_tensors


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


@proves("tf.estimator.add_metrics")
def adds_metrics(function, tmp_path):
    estimator = trained(estimators.Estimator, tmp_path)
    metric_fn = lambda predictions: {"mean": tf.metrics.mean(predictions["y"])}  # noqa: E731
    more = function(estimator, metric_fn)
    assert more.evaluate(input_fn, steps=1)["mean"] > 0.5


@proves("tf.contrib.estimator.forward_features")
def forwards_features(function, tmp_path):
    def doubling(features, labels, mode):
        return estimators.EstimatorSpec(mode, {"y": features["x"] * 2.0})

    estimator = estimators.Estimator(doubling, str(tmp_path))
    batch = {"x": np.ones([1], np.float32), "id": np.array([7])}
    predictions = function(estimator, "id").predict(lambda: tf2.data.Dataset.from_tensors(batch))
    assert next(predictions) == {"y": 2.0, "id": 7}
