import keras
import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support.legacy_models import logits_of, make_estimator

import tpu_estimator_compat as tpu

from .fitting import dataset

STEPS = 4  # of an epoch


def model_with(make):
    def model_fn(features, labels, mode, params):
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        step = tf.train.get_or_create_global_step()
        made = [tpu.CrossShardOptimizer(each) for each in make(step)]
        trainable = tf.trainable_variables()[:2]
        parts = [trainable] if len(made) == 1 else [[v] for v in trainable]
        updates = [o.minimize(loss, var_list=v) for o, v in zip(made, parts, strict=True)]
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=tf.group(*updates, step.assign_add(1))
        )

    return model_fn


def fitted(model_dir, make, epochs=1, callbacks=(), **kwargs):
    estimator = make_estimator(model_dir, model_with(make), use_tpu=True, loop=3, **kwargs)
    model = estimator.keras_model()
    history = model.fit(dataset(), epochs=epochs, callbacks=list(callbacks), verbose=0)
    return model, history.history


def halved(epoch, rate):
    return rate / 2


def piecewise(step):
    """What `halved` makes of 0.8; the step is raised whenever, so each boundary is between two."""
    return tf.train.piecewise_constant(step, [STEPS - 1, 2 * STEPS - 1], [0.4, 0.2, 0.1])


OPTIMIZERS = {
    "descent": tf.train.GradientDescentOptimizer,
    "adam": tf.train.AdamOptimizer,
    "momentum": lambda rate: tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True),
}


@pytest.mark.parametrize(
    ("name", "replicas"), [("descent", 1), ("descent", 2), ("adam", 1), ("momentum", 1)]
)
def test_a_scheduler_trains_as_a_schedule_in_model_fn(tmp_path, strategy, name, replicas):
    make = OPTIMIZERS[name]
    where = {"train_distribute": strategy(replicas)}
    scheduler = keras.callbacks.LearningRateScheduler(halved)
    ours, history = fitted(tmp_path / "a", lambda step: [make(0.8)], 3, [scheduler], **where)
    theirs, _ = fitted(tmp_path / "b", lambda step: [make(piecewise(step))], 3, **where)
    np.testing.assert_allclose(history["learning_rate"], [0.4, 0.2, 0.1], rtol=1e-6)
    for a, b in zip(ours.trainable_variables, theirs.trainable_variables, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
    assert int(ours.optimizer.iterations) == 3 * STEPS


def test_a_plateau_reduces_the_rate(tmp_path):
    plateau = keras.callbacks.ReduceLROnPlateau("loss", 0.1, patience=1, min_delta=100.0)
    model, history = fitted(tmp_path, lambda step: [tf.train.AdamOptimizer(0.01)], 3, [plateau])
    np.testing.assert_allclose(history["learning_rate"], [0.01, 0.01, 0.001], rtol=1e-6)
    assert float(model.optimizer.learning_rate) == pytest.approx(0.0001)


RATES = {
    "constant": lambda step: 0.5,
    "schedule": lambda step: tf.train.exponential_decay(0.5, step, 2, 0.5),
    "variable": lambda step: tf.get_variable(
        "rate", [], initializer=tf.zeros_initializer(), trainable=False
    ),
}


@pytest.mark.parametrize(
    ("kind", "rate"), [("constant", 0.5), ("schedule", 0.125), ("variable", 0.25)]
)
def test_the_rate_of_the_step_is_read_and_replaced(tmp_path, kind, rate):
    model, _ = fitted(tmp_path, lambda step: [tf.train.GradientDescentOptimizer(RATES[kind](step))])
    if kind == "variable":
        [variable] = [v for v in model.variables if v.path == "rate"]
        variable.assign(rate)
    assert float(model.optimizer.learning_rate) == pytest.approx(rate)
    before = model.trainable_variables[0].numpy()
    model.optimizer.learning_rate = 0.0
    model.fit(dataset(), verbose=0)
    np.testing.assert_array_equal(model.trainable_variables[0].numpy(), before)
    assert float(model.optimizer.learning_rate) == 0.0
    model.optimizer.learning_rate = 0.1
    model.fit(dataset(), verbose=0)
    assert np.any(model.trainable_variables[0].numpy() != before)
    assert int(model.optimizer.iterations) == 3 * STEPS


def by_hand(step):
    class Descent(tf.train.Optimizer):
        def __init__(self):
            super().__init__(False, "by_hand")

        def apply_gradients(self, pairs, global_step=None, name=None):
            return tf.group(*[v.assign_sub(0.1 * g) for g, v in pairs if g is not None])

    return [Descent()]


class OfBert(tf.train.Optimizer):
    """As BERT's AdamWeightDecayOptimizer: all of it in Python, with slots that are variables."""

    def __init__(self, rate):
        super().__init__(False, "OfBert")
        self.learning_rate = rate

    def apply_gradients(self, pairs, global_step=None, name=None):
        updates = []
        for gradient, variable in pairs:
            slot = tf.get_variable(
                variable.op.name + "/m",
                variable.shape,
                trainable=False,
                initializer=tf.zeros_initializer(),
            )
            moment = 0.9 * slot + 0.1 * gradient
            step = moment / (tf.abs(moment) + 1e-6) + 0.01 * variable
            updates += [variable.assign(variable - self.learning_rate * step), slot.assign(moment)]
        return tf.group(*updates)


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_rate_of_an_optimizer_in_python(tmp_path, strategy, replicas):
    def make(step):
        return [OfBert(tf.train.polynomial_decay(tf.constant(0.4), step, 2 * STEPS, 0.0))]

    model, _ = fitted(tmp_path, make, train_distribute=strategy(replicas))
    assert float(model.optimizer.learning_rate) == pytest.approx(0.2)
    model.optimizer.learning_rate = 0.0
    before = [variable.numpy() for variable in model.trainable_variables]
    model.fit(dataset(), verbose=0)
    for value, variable in zip(before, model.trainable_variables, strict=True):
        np.testing.assert_array_equal(value, variable.numpy())


WITHOUT = {
    "two": (
        lambda step: [tf.train.AdamOptimizer(0.1), tf.train.AdamOptimizer(0.2)],
        "its optimizers use 2 different rates: Adam/learning_rate:0, Adam_1/learning_rate:0",
    ),
    "by hand": (by_hand, "only AssignSubVariableOp"),
}


@pytest.mark.parametrize("kind", WITHOUT)
def test_steps_without_one_rate_say_so_and_train(tmp_path, kind):
    make, reason = WITHOUT[kind]
    board = keras.callbacks.TensorBoard(tmp_path / "board", write_steps_per_second=True)
    model, _ = fitted(tmp_path / "model", make, 1, [board])
    assert int(model.optimizer.iterations) == STEPS
    with pytest.raises(ValueError, match=f"has no one learning rate: .*{reason}"):
        model.fit(dataset(), callbacks=[keras.callbacks.LearningRateScheduler(halved)], verbose=0)
    with pytest.raises(ValueError, match=f"learning_rate=0.5 cannot be set: .*{reason}"):
        model.optimizer.learning_rate = 0.5


@pytest.mark.parametrize("optimizer", [tf.train.GradientDescentOptimizer, tf.train.AdamOptimizer])
@pytest.mark.parametrize("by_rate", [True, False])
def test_sparse_updates_go_by_the_rate_and_others_are_named(tmp_path, optimizer, by_rate):
    def model_fn(features, labels, mode, params):
        rows = tf.nn.embedding_lookup(tf.get_variable("table", [2, 3]), labels)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features) + rows)
        train_op = optimizer(0.1).minimize(loss, tf.train.get_global_step())
        if not by_rate:
            train_op = tf.group(train_op, tf.trainable_variables()[0].assign_sub(tf.ones([2, 3])))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    model = make_estimator(tmp_path, model_fn).keras_model()
    model.fit(dataset(), verbose=0)
    if not by_rate:
        with pytest.raises(ValueError, match=r"AssignSub.* updates a variable without using"):
            _ = model.optimizer.learning_rate
        return
    before = [v.numpy() for v in model.trainable_variables]
    model.optimizer.learning_rate = 0.0
    model.fit(dataset(), verbose=0)
    for value, variable in zip(before, model.trainable_variables, strict=True):
        np.testing.assert_array_equal(value, variable.numpy())


def test_tensorboard_shows_the_rate(tmp_path):
    board = keras.callbacks.TensorBoard(tmp_path / "board")
    scheduler = keras.callbacks.LearningRateScheduler(halved)
    fitted(tmp_path / "m", lambda step: [tf.train.AdamOptimizer(0.8)], 2, [scheduler, board])
    [path] = (tmp_path / "board" / "train").glob("events*v2")
    shown = [
        float(tf2.make_ndarray(value.tensor))
        for event in tf.train.summary_iterator(str(path))
        for value in event.summary.value
        if value.tag == "epoch_learning_rate"
    ]
    np.testing.assert_allclose(shown, [0.4, 0.2], rtol=1e-6)


def test_a_rate_is_a_number(tmp_path):
    model, _ = fitted(tmp_path, lambda step: [tf.train.AdamOptimizer(0.8)])
    for value in (float("nan"), "fast", keras.optimizers.schedules.CosineDecay(1.0, 1)):
        with pytest.raises(TypeError, match="must be a finite number, given"):
            model.optimizer.learning_rate = value


def test_before_there_is_a_step_there_is_no_rate(tmp_path):
    model = make_estimator(tmp_path).keras_model()
    with pytest.raises(ValueError, match=r"no training step yet\. Call fit, or keras_model"):
        _ = model.optimizer.learning_rate
    assert int(model.optimizer.iterations) == 0
