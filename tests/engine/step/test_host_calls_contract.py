"""The contract of host functions, row by row of the guide: what they use, read, write, return."""

import types

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.capture.capture import capture, new_graph, placeholders
from tpu_estimator_compat.engine.step.host_calls import HostPlaceholders

BATCH = 4


def sums(*data):
    """The sum of batches, in a dataset's own function."""
    dataset = tf.data.Dataset.from_tensors(1.0)
    return dataset.map(lambda one: one + tf.reduce_sum(data[0])).reduce(0.0, tf.add)


def after(wait_for, made):
    with tf.control_dependencies([wait_for]):
        return made()


USES = {
    "a tensor": lambda own, x: own.each + 1.0,
    "features": lambda own, x: own.features + 1.0,
    "labels": lambda own, x: own.labels + 1.0,
    "a constant": lambda own, x: own.constant + x,
    "a placeholder": lambda own, x: own.placeholder + x,
    "a read of a variable": lambda own, x: own.read + x,
    "the value of the global step": lambda own, x: own.step + 1,
    "the result of a branch": lambda own, x: own.branch + x,
    "a gradient": lambda own, x: tf.gradients(own.each, own.w),
    "in a branch": lambda own, x: tf.cond(x[0] > 0, lambda: own.each, lambda: x),
    "in a condition": lambda own, x: tf.cond(own.each[0] > 0, lambda: x, lambda: x + 1.0),
    "in a loop": lambda own, x: tf.while_loop(lambda i: i < own.each[0], lambda i: i + 1.0, [0.0]),
    "in Python": lambda own, x: tf.py_func(np.sum, [own.each], tf.float32),
    "in a function": lambda own, x: tf.function(lambda: own.each + 1.0)(),
    "in a dataset": lambda own, x: sums(own.each),
    "before its own": lambda own, x: after(own.each, lambda: tf.identity(x)),
    "an operation before its own": lambda own, x: after(own.operation, tf.no_op),
    "a table": lambda own, x: own.table.lookup(tf.cast(x, tf.int32)),
}
SUMMARIES = {
    "scalar": lambda own, x: tf.summary.scalar("s", x[0]),
    "histogram": lambda own, x: tf.summary.histogram("s", x),
    "text": lambda own, x: tf.summary.text("s", tf.as_string(x)),
    "image": lambda own, x: tf.summary.image("s", tf.zeros([1, 2, 2, 1])),
    "merged": lambda own, x: tf.summary.merge([tf.constant(b"")]),
    "in a branch": lambda own, x: tf.cond(
        x[0] > 0, lambda: tf.summary.scalar("s", x[0]), lambda: tf.constant(b"")
    ),
}
CANNOT = (
    r"^Cannot use '{0}' as input to '.*' because '{0}' is in a while loop\. The function of {1}"
)
NAMES = {"a tensor": "each", "a constant": "constant", "an operation before its own": "operation"}


def tensors_of_model_fn(features, labels):
    w = tf.get_variable("w", [], initializer=tf.ones_initializer())
    each = tf.multiply(features, w, name="each")
    with tf.init_scope():
        lifted = tf.constant(4.0)
    return types.SimpleNamespace(
        features=features,
        labels=labels,
        w=w,
        each=each,
        lifted=lifted,
        constant=tf.constant(2.0, name="constant"),
        placeholder=tf.placeholder_with_default(1.0, []),
        read=w.read_value(),
        step=tf.identity(tf.train.get_global_step()),
        branch=tf.cond(features[0] > 0, lambda: 1.0, lambda: 2.0),
        metric=tf.metrics.mean(each),
        operation=tf.no_op("operation"),
        table=tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer([1], [2.0]), tf.constant(0.0)
        ),
    )


def call(use):
    """Calls a host function after a model_fn for `use_tpu=True`, and runs nothing."""
    with new_graph(None) as graph:
        spec = tf.TensorSpec([BATCH], tf.float32)
        element = placeholders((spec, spec))
        own = capture(lambda e: tensors_of_model_fn(*e), element, replicas=1, tpu_semantics=True)
        host = HostPlaceholders(graph, 1, same_on_all_replicas=False)
        return host.call("host_call", (lambda x: use(own, x), [own.each]))


def model_with(use, field="host_call", sent=lambda own: [own.each], calls=None):
    """A model_fn whose host function is `use(own, x)`, on a namespace of model_fn's tensors."""

    def model_fn(features, labels, mode, params):
        own = tensors_of_model_fn(features, labels)
        loss = tf.reduce_mean(own.each)

        def function(*x):
            if calls is not None:
                calls.append(len(x))
            found = use(own, *x)
            pair = found if isinstance(found, tuple) else (found, found)
            return {"m": pair} if field == "eval_metrics" else found

        takes_one = (lambda x: function(x)) if sent(own) else (lambda: function())
        optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.0))
        counter = tf.train.get_global_step()
        train_op = optimizer.minimize(loss, counter) if mode == "train" else None
        host = {field: (takes_one, sent(own))}
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, predictions={"each": own.each}, **host
        )

    return model_fn


def input_fn(params):
    x = np.arange(2 * BATCH, dtype=np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((x, x))
    return dataset.batch(params["batch_size"], drop_remainder=True)


def run(tmp_path, through, model_fn, strategy=None, use_tpu=True):
    sizes = dict.fromkeys(["train_batch_size", "eval_batch_size", "predict_batch_size"], BATCH)
    estimator = make_estimator(
        tmp_path, model_fn, use_tpu=use_tpu, train_distribute=strategy, **sizes
    )
    if through == "predict":
        return list(estimator.predict(input_fn))
    return getattr(estimator, through)(input_fn, steps=2)


@pytest.mark.parametrize("kind", USES)
def test_a_tensor_of_model_fn_is_refused(kind):
    with pytest.raises(ValueError, match=CANNOT.format(NAMES.get(kind, ".*"), "host_call takes")):
        call(USES[kind])


@pytest.mark.parametrize("kind", SUMMARIES)
def test_summaries_of_tf1_are_refused(kind):
    with pytest.raises(ValueError, match=r"Please use tf\.contrib\.summary instead of tf\.summary"):
        call(SUMMARIES[kind])


@pytest.mark.parametrize(
    ("through", "field"),
    [
        ("train", "host_call"),
        ("evaluate", "eval_metrics"),
        ("evaluate", "host_call"),
        ("predict", "host_call"),
    ],
)
@pytest.mark.parametrize(
    ("use", "match"),
    [
        (USES["a tensor"], CANNOT.format("each", "{field}")),
        (lambda own, x: own.metric[1], "Operation 'mean/.*' has been marked as not fetchable"),
    ],
)
def test_in_every_call(tmp_path, through, field, use, match):
    with pytest.raises(ValueError, match=match.format(field=field)):
        run(tmp_path, through, model_with(use, field))


@pytest.mark.parametrize(("kind", "more"), [("a tensor", 1), ("a constant", 2), ("labels", 1)])
def test_off_the_tpu_all_is_one_graph(tmp_path, kind, more):
    def mean(own, x):
        return tf.metrics.mean(USES[kind](own, x))

    found = run(tmp_path, "evaluate", model_with(mean, "eval_metrics"), use_tpu=False)
    assert found["m"] == 3.5 + more


def own_variable(own, x):
    made = tf.get_local_variable("count", [], initializer=tf.zeros_initializer())
    return tf.assign_add(made, tf.reduce_sum(x))


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        pytest.param(lambda own, x: tf.reduce_sum(x), 14.0, id="its argument"),
        pytest.param(lambda own, x: x[0] + np.float32(3), 5.0, id="an array"),
        pytest.param(lambda own, x: own.w + x[3], 6.0, id="a variable"),
        pytest.param(lambda own, x: tf.train.get_global_step() + 1, 1, id="the global step"),
        pytest.param(lambda own, x: own.lifted + x[3], 9.0, id="made in an init_scope"),
        pytest.param(own_variable, (6.0 + 28.0) / 2, id="its own variable"),
    ],
)
def test_what_it_may_use(tmp_path, strategy, use, expected):
    """The mean over two steps on two replicas: one call a step, on the tensors of both."""

    def mean(own, x):
        return tf.metrics.mean(use(own, x))

    found = run(tmp_path, "evaluate", model_with(mean, "eval_metrics"), strategy(2))
    assert found["m"] == expected


@pytest.mark.parametrize("replicas", [1, 2])
def test_all_replicas_see_what_it_writes(tmp_path, strategy, replicas):
    def write(own, x):
        return [tf.assign_add(own.w, 1.0)]

    found = run(tmp_path, "evaluate", model_with(write), strategy(replicas))
    assert found["loss"] == (1.5 + 2 * 5.5) / 2


@pytest.mark.parametrize("through", ["train", "evaluate", "predict"])
@pytest.mark.parametrize("replicas", [1, 2])
def test_it_runs_once_a_step_though_it_reads_nothing(tmp_path, strategy, replicas, through):
    ran = []

    def call(own, x):
        return [tf.py_func(lambda: ran.append(1), [], [])]

    run(tmp_path, through, model_with(call), strategy(replicas))
    assert len(ran) == 2


RETURNED = {
    "its argument": lambda own, x: x,
    "a tensor": lambda own, x: x + 1.0,
    "many": lambda own, x: {"a": [x, (tf.no_op(), x + 1.0)], "b": own.w, "c": []},
}


@pytest.mark.parametrize("kind", RETURNED)
@pytest.mark.parametrize("through", ["train", "evaluate", "predict"])
def test_what_it_may_return(tmp_path, through, kind):
    assert run(tmp_path, through, model_with(RETURNED[kind])) is not None


@pytest.mark.parametrize("through", ["train", "evaluate"])
@pytest.mark.parametrize(
    ("returned", "error"),
    [(None, TypeError), ([None], TypeError), ("no name", ValueError)],
)
def test_what_it_may_not_return(tmp_path, through, returned, error):
    with pytest.raises(error, match=r"^Argument `fetch` = .* The function of host_call must"):
        run(tmp_path, through, model_with(lambda own, x: returned))


def test_a_prediction_takes_none(tmp_path):
    assert len(run(tmp_path, "predict", model_with(lambda own, x: None))) == 2 * BATCH


def test_without_tensors(tmp_path):
    """A training does not call it; an evaluation calls it if another function has tensors."""
    calls = []
    empty = model_with(lambda own: [], sent=lambda own: [], calls=calls)
    run(tmp_path, "train", empty)
    assert not calls
    with pytest.raises(ValueError, match="of length 0 less than minimum 1"):
        run(tmp_path, "evaluate", empty)
    run(tmp_path, "predict", empty)
    assert calls == [0]


def test_arrays_are_of_each_replica(tmp_path, strategy):
    def sent(own):
        return [np.array([1.0, 2.0], np.float32)]

    model_fn = model_with(lambda own, x: tf.metrics.mean(tf.size(x)), "eval_metrics", sent)
    assert run(tmp_path, "evaluate", model_fn, strategy(2))["m"] == 4
