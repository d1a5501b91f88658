"""What hooks feed, and their mistakes in it."""

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


def _model_fn(features, labels, mode, params):
    x = tf.placeholder_with_default(np.ones(2, np.float32), [2], "x")
    whole = tf.placeholder_with_default(np.int32(1), [], "whole")
    computed = tf.identity(x, "computed")
    tf.get_default_graph().prevent_feeding(computed)
    for dtype in (tf.uint8, tf.float16, tf.float32, tf.float64, tf.string):
        tf.identity(tf.placeholder(dtype, None, f"of_{dtype.name}"), dtype.name)
    sparse = tf.sparse_placeholder(tf.float32, name="sparse")
    tf.identity(tf.sparse.reduce_sum(sparse), "sum_of_sparse")
    tf.add_to_collection("sparse", sparse)
    tf.identity(tf.reduce_sum(computed) * tf.cast(whole, tf.float32), "total")
    tf.identity(models.weight() * 2.0, "twice")
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        loss = models.loss_of(features, labels)
    make = tf.estimator.tpu.TPUEstimatorSpec if params["for_tpu"] else tf.estimator.EstimatorSpec
    return make(mode, loss=loss, train_op=models.descent(loss))


def _train(model_dir, hook, for_tpu=False, steps=1):
    make = models.tpu_estimator if for_tpu else models.estimator
    estimator = make(model_dir, _model_fn, params={"for_tpu": for_tpu})
    inputs = models.tpu_batches() if for_tpu else models.batches()
    estimator.train(inputs, hooks=[hook], steps=steps)


def _tensor(name):
    return tf.get_default_graph().get_tensor_by_name(name)


def _mistakes():
    """Pairs of fetches and feeds; each is made anew, of the tensors of the default graph."""
    with tf.Graph().as_default():
        foreign = tf.placeholder(tf.float32, [2], "foreign")
    x, [sparse] = _tensor("x:0"), tf.get_collection("sparse")
    for feeds in (
        *({key: [1.0, 2.0]} for key in (foreign, 3, None, "nothing:0", "x", "x:1", x.op)),
        *({x: value} for value in (_tensor("computed:0"), 1.0, [1.0], "text", [[1], [2, 3]])),
        *({"whole:0": value} for value in (2**40, 2**70, "text", None, np.nan, np.inf, 1j)),
        {"computed:0": [1.0, 2.0]},
        {(x, "whole:0"): ([1.0, 2.0],)},
        {(x, "whole:0"): ([1.0, 2.0], 3), "whole:0": 4},
        {"whole:0": 2**40, "nothing:0": 1},
        [("whole:0", 2)],
    ):
        yield "total:0", feeds
    for dtype, values in {
        "uint8": [256, -1, 255],
        "float16": [70000, 2049, 2048],
        "float32": [2**24 + 1, 2**24],
        "float64": [2**53 + 1],
        "string": [5, 5.5, ["a", None], [1, 2]],
    }.items():
        for value in values:
            yield f"{dtype}:0", {f"of_{dtype}:0": value}
    for value in (3, ([[0, 0]], [x], [1, 1]), ([0, 0], [4.0], [1, 1])):
        yield "sum_of_sparse:0", {sparse: value}
    yield "nothing:0", {"nothing:0": 1}
    yield "nothing:0", {"whole:0": 1}


def _correct():
    x, [sparse] = _tensor("x:0"), tf.get_collection("sparse")
    fed = tf.SparseTensorValue([[0, 0], [1, 2]], [1.0, 2.0], [2, 3])
    yield "total:0", {"x:0": [2, 3], "whole:0": 2.5}
    yield "total:0", {(x, "whole:0"): ([2.0, 3.0], True)}
    yield "total:0", {"x:0": [2.0, 3.0], x: [4.0, 5.0]}
    yield ["whole:0", "total:0"], {"whole:0": 5}
    yield [], {"whole:0": 5}
    yield "total:0", {"total:0": 7.0}
    yield "uint8:0", {"of_uint8:0": [256, -1, 255]}
    yield "string:0", {"of_string:0": ["a", b"bc", "d\u00fc"]}
    yield "sum_of_sparse:0", {sparse: fed}
    yield sparse, {sparse: tuple(fed)}


def _values(result):
    parts = result if isinstance(result, (list, tuple)) else [result]
    return [np.asarray(part).tolist() for part in parts]


class _Runs(tf.train.SessionRunHook):
    """Runs fetches with feeds wherever a hook has a session, and records values and errors."""

    def __init__(self, record, make):
        self.record, self.make = record, make

    def run(self, where, session):
        for fetches, feeds in self.make():
            try:
                self.record(where, _values(session.run(fetches, feeds)))
            except Exception as error:
                self.record(where, error)

    def after_create_session(self, session, coord):
        self.run("created", session)

    def after_run(self, run_context, run_values):
        self.run("run", run_context.session)

    def end(self, session):
        self.run("end", session)


def mistakes_in_runs_of_a_hook(model_dir, record, for_tpu):
    """Training goes on."""
    _train(model_dir, _Runs(record, _mistakes), for_tpu, steps=2)


def what_a_hook_may_feed(model_dir, record, for_tpu):
    _train(model_dir, _Runs(record, _correct), for_tpu)


class _Feeds(models.Recording):
    def __init__(self, record, make):
        super().__init__(record)
        self.make = make

    def before_run(self, run_context):
        super().before_run(run_context)
        return tf.train.SessionRunArgs("total:0", self.make())


def mistakes_before_a_run(model_dir, record, for_tpu):
    """Training ends with the error."""
    for feeds in ({"nothing:0": 1}, {"whole:0": 2**40}, {"computed:0": [1.0, 2.0]}):
        models.attempt(record, _train, model_dir, _Feeds(record, lambda f=feeds: f), for_tpu)


def _variables():
    [weight] = tf.trainable_variables()
    step = tf.train.get_global_step()
    for value in (5.0, [5.0], "text", 2**24 + 1):
        yield [weight, "twice:0"], {weight: value}
    yield [step], {step: 9}
    yield [weight, step], {"whole:0": 1}


def a_hook_feeds_a_variable(model_dir, record):
    _train(model_dir, _Runs(record, _variables))


class _FeedsRefs(_Runs):
    """Also feeds refs to operations that assign to them, at last to the step of training."""

    def begin(self):
        [weight], step = tf.trainable_variables(), tf.train.get_global_step()
        self.assigned = [weight.assign_add(3.0), step.assign(7)]
        self.make = lambda: [
            *_variables(),
            *(([op], {weight: 5.0, "whole:0": 1, step: 2}) for op in self.assigned),
            (self.assigned, {"global_step:0": 5, "w:0": 5.0}),
            (self.assigned[0], {weight.op.name + "/read:0": 5.0}),
        ]

    def before_run(self, run_context):
        self.run("before run", run_context.session)
        return tf.train.SessionRunArgs("twice:0", {"w:0": 5.0})


def a_hook_feeds_a_ref_variable(model_dir, record):
    tf.disable_resource_variables()
    try:
        models.attempt(record, _train, model_dir, _FeedsRefs(record, None))
    finally:
        tf.enable_resource_variables()
