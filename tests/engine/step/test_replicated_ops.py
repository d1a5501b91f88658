"""Ops around a replicated TPU computation, in model_fns that run without a TPU."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf.tpu import compilation_result_pb2
from tensorflow.python.ops import control_flow_ops
from tensorflow.python.tpu.ops import tpu_ops
from tpu_estimator_compat.v1.contrib.tpu.python.tpu import tpu as legacy_tpu

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.jax.lowering.replica_step import replica_step
from tpu_estimator_compat.engine.step import replicated_ops
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram


def context_of_replica():
    """As helpers for TPUs look for it."""
    found = tf.get_default_graph()._get_control_flow_context()
    while found is not None and not isinstance(found, control_flow_ops.XLAControlFlowContext):
        found = found.outer_context
    return found


def own_of(variables):
    """The value of the replica's own variable, and an op that adds to it."""
    found = context_of_replica()
    assert isinstance(found, legacy_tpu.TPUReplicateContext)
    handle = found.get_replicated_var_handle("own", "own", variables)
    value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
    with tf.control_dependencies([value]):
        return value, tf.raw_ops.AssignAddVariableOp(resource=handle, value=value)


def input_fn(params):
    return tf.data.Dataset.from_tensors(np.ones(4, np.float32)).repeat()


def trained(folder, loss_and_op, steps=3, use_tpu=True, **settings):
    """The losses and variables of a training on logical CPUs."""

    def model_fn(features, labels, mode, params):
        loss, op = loss_and_op(tf.reduce_mean(features))
        step = tf.assign_add(tf.train.get_global_step(), 1)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=tf.group(step, op))

    config = tpu.RunConfig(
        model_dir=str(folder),
        train_distribute=settings.pop("strategy", None),
        tpu_config=tpu.TPUConfig(per_host_input_for_training=tpu.InputPipelineConfig.BROADCAST),
        **settings,
    )
    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=use_tpu, train_batch_size=4)
    estimator.train(input_fn, max_steps=steps)
    return {name: estimator.get_variable_value(name) for name in estimator.get_variable_names()}


def test_each_replica_has_its_own_constant(tmp_path, strategy):
    def build(one):
        own = tpu_ops.tpu_replicated_input([tf.constant(1.0), tf.constant(10.0)])
        total = tf.get_variable("total", initializer=0.0)
        return one, tf.assign(total, tf.tpu.cross_replica_sum(own * own * one))

    found = trained(tmp_path, build, strategy=strategy(2))
    assert found["total"] == 101.0


def test_each_replica_has_its_own_variable(tmp_path, strategy):
    """It alone changes it; the host, which saves it, reads what it has become."""

    def build(one):
        variables = [tf.get_variable(f"of_{i}", initializer=float(i + 1)) for i in range(2)]
        value, add = own_of(variables)
        return tf.tpu.cross_replica_sum(value * one), add

    found = trained(tmp_path, build, strategy=strategy(2))
    assert (found["of_0"], found["of_1"]) == (8.0, 16.0)


def test_a_sole_replica_has_the_only_input(tmp_path):
    def build(one):
        value, add = own_of([tf.get_variable("of_0", initializer=3.0)])
        return value * one, add

    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    assert trained(tmp_path, build, strategy=strategy, steps=1)["of_0"] == 6.0


def test_a_computation_for_one_core_runs_in_place(tmp_path):
    """`tpu.rewrite` in a model_fn; with TPU rules TensorFlow refuses it, as one in another."""

    def build(one):
        total = tf.get_variable("total", initializer=0.0)
        [doubled] = tf.tpu.rewrite(lambda x: x * 2.0, [one])
        return doubled, tf.assign(total, doubled)

    assert trained(tmp_path, build, use_tpu=False)["total"] == 2.0
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with pytest.raises(NotImplementedError, match="tpu_shard_context cannot be nested"):
        trained(tmp_path / "on_tpu", build, strategy=strategy)


def test_what_says_that_a_tpu_has_compiled(graph):
    result = tpu_ops.tpu_compilation_result()
    program = ReplicaProgram(graph, [], [result])

    @tf.function(autograph=False)
    def run():
        return program([], None)

    with eager.eager_mode():
        [said] = run()
    message = compilation_result_pb2.CompilationResultProto.FromString(said.numpy())
    assert message.status_error_message == ""


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda one: one * tpu_ops.tpu_replicated_input([tf.constant(1.0)] * 8),
            ValueError,
            "inputs for 8 replicas, and 2 run.*--logical-cpus 8",
        ),
        (
            lambda one: tf.add_n(tpu_ops.tpu_replicated_output(one, num_replicas=2)),
            NotImplementedError,
            "hands out the values of 2 replicas.*call the function there",
        ),
        (
            lambda one: tf.cond(one > 0, lambda: own_in_a_branch(one), lambda: one),
            NotImplementedError,
            "uses the variable of_0, which is one replica's own.*outside of tf.cond",
        ),
    ],
)
def test_what_a_replica_cannot_have_is_refused(tmp_path, strategy, build, error, message):
    def fails(one):
        variables = [tf.get_variable(f"of_{i}", initializer=1.0) for i in range(2)]
        value, _ = own_of(variables)
        return tf.tpu.cross_replica_sum(value * build(one)), tf.no_op()

    with pytest.raises(error, match=message):
        trained(tmp_path, fails, strategy=strategy(2))


def own_in_a_branch(one):
    """As a helper for TPUs does that finds no context: it takes the first variable."""
    assert context_of_replica() is None
    with tf.variable_scope("", reuse=True):
        return one * tf.get_variable("of_0")


def test_replicas_that_run_one_program_are_refused(graph):
    one = tf.placeholder(tf.float32, [])
    own = tpu_ops.tpu_replicated_input([tf.constant(1.0), tf.constant(10.0)])
    plan = StepPlan(graph, tf.TensorSpec([]), [one], fetches=[own * one])
    with pytest.raises(NotImplementedError, match=r"an input of its own.*they run one program"):
        replica_step(plan, 2)


def test_several_machines_are_refused(graph):
    variables = [tf.get_variable(f"of_{i}", initializer=1.0, use_resource=True) for i in range(2)]
    own = tpu_ops.tpu_replicated_input([v.handle for v in variables])
    with pytest.raises(NotImplementedError, match=r"of_0 is a variable of one replica.*chief"):
        replicated_ops.owned([own.op], 2, compiled=False, alone=False)
