import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf
from jax.extend.mlir import ir
from jax.interpreters import mlir

import tpu_estimator_compat as tec
from tpu_estimator_compat.engine.jax import meshes, step
from tpu_estimator_compat.engine.jax.lowering.findings import Kind
from tpu_estimator_compat.engine.jax.lowering.step_module import Dispatch
from tpu_estimator_compat.tools.preflight import compiler_dump, programs
from tpu_estimator_compat.tools.preflight.compiler_dump import CompilerDump
from tpu_estimator_compat.tools.preflight.report import Verdict

WIDTH = 8
LOOP = 6


def input_fn(params):
    x = np.zeros([8 * params["batch_size"], WIDTH], np.float32)
    data = tf.data.Dataset.from_tensor_slices((x, np.zeros([len(x)], np.int32)))
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


def predict_input_fn(params):
    return tf.data.Dataset.from_tensors(np.zeros([params["batch_size"], WIDTH], np.float32))


def model_fn(features, labels, mode, params):
    first = tf.compat.v1.get_variable("first", [WIDTH, 4096])
    second = tf.compat.v1.get_variable("second", [4096, 4])
    hidden = tf.nn.relu(features @ first)
    if mode == "train":
        hidden = tf.compat.v1.nn.dropout(hidden, rate=0.1)
    logits = hidden @ second
    if mode == "infer":
        names = tf.strings.as_string(tf.argmax(logits, axis=1))
        return tec.TPUEstimatorSpec(mode, predictions={"logits": logits, "names": names})
    loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits)

    def metric_fn(labels, logits):
        return {"accuracy": tf.compat.v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))}

    def host_call(logits, unused_hidden):
        return tf.reduce_mean(logits)

    optimizer = tf.compat.v1.tpu.CrossShardOptimizer(tf.compat.v1.train.AdamOptimizer(0.01))
    return tec.TPUEstimatorSpec(
        mode,
        loss=loss,
        train_op=optimizer.minimize(loss, tf.compat.v1.train.get_global_step()),
        eval_metrics=(metric_fn, [labels, logits]),
        host_call=(host_call, [logits, hidden]) if mode == "train" else None,
    )


def estimator(folder, runtime, cores=None):
    shards = tec.TPUConfig(
        iterations_per_loop=LOOP, num_shards=4 // (cores or 1), num_cores_per_replica=cores
    )
    return tec.TPUEstimator(
        model_fn,
        config=tec.RunConfig(model_dir=str(folder), runtime=runtime, tpu_config=shards),
        use_tpu=True,
        train_batch_size=32,
        eval_batch_size=32,
        predict_batch_size=32,
    )


def without_numbers(dispatch: Dispatch) -> Dispatch:
    """With the module as text, locations included, and no number in the name of its function.

    The bytecode has the length of that name in several places.
    """
    with mlir.make_ir_context():
        module = ir.Module.parse(dispatch.step.code)
        text = module.operation.get_asm(enable_debug_info=True)
    code, replaced = re.subn(r"(?<=_inference_call_)\d+(?=__)", "", text)
    assert replaced
    return dataclasses.replace(dispatch, step=dataclasses.replace(dispatch.step, code=code))


@pytest.fixture(autouse=True)
def _nothing_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def ran(monkeypatch):
    """The dispatches that the runtime makes functions of."""
    found = []

    def noted(module, mesh, most, loss, partition, **of_processes):
        assert mesh.size == 4
        assert not any(of_processes.values())  # this one is alone
        dispatch = Dispatch(module, most, loss, mesh.size // mesh.shape[meshes.REPLICA], partition)
        found.append(without_numbers(dispatch))
        return real(module, mesh, most, loss, partition, **of_processes)

    real = step.StepFunction
    monkeypatch.setattr(step, "StepFunction", noted)
    return found


@pytest.fixture
def checked(monkeypatch):
    """The dispatches that preflight would compile."""
    found = []

    def noted(planned, step):
        found.append(real(planned, step))
        return found[-1]

    real = programs.dispatch_of
    monkeypatch.setattr(programs, "dispatch_of", noted)
    return found


def test_the_runtime_runs_what_preflight_compiles(tmp_path, ran, checked):
    made = estimator(tmp_path, "jax")
    made.train(input_fn, max_steps=2 * LOOP)
    made.evaluate(input_fn, steps=LOOP)
    predicted = list(made.predict(predict_input_fn))
    assert [p["names"] for p in predicted] == [b"%d" % np.argmax(p["logits"]) for p in predicted]

    for mode in ("train", "eval", "infer"):
        data = predict_input_fn if mode == "infer" else input_fn
        [report] = made.preflight(data, "v5e:2x2", mode, depth="lower").reports
        assert report.findings == []
    training, evaluation, prediction = map(without_numbers, checked)
    assert ran[0] == training
    assert training.most == LOOP
    assert "random_state" in training.step.variables
    # How many steps an evaluation has is known when it begins.
    assert ran[1] == dataclasses.replace(evaluation, most=LOOP)
    assert evaluation.most == 64
    assert ran[2] == prediction
    assert len(ran) == 3


@pytest.mark.slow  # the compiler takes seconds
def test_replicas_of_two_devices(tmp_path, ran, checked):
    made = estimator(tmp_path / "model", "jax", cores=2)
    made.train(input_fn, max_steps=LOOP)
    [report] = made.preflight(input_fn, "v5e:2x2").reports

    [dispatch] = map(without_numbers, checked)
    assert ran == [dispatch]
    assert (report.replicas, dispatch.cores) == (2, 2)
    assert report.verdict is Verdict.FITS
    assert 0.5 < report.memory.arguments / report.variable_bytes < 0.75
    [note] = report.notes
    assert "2 devices share a replica" in note


def test_host_only_operations_are_faults_for_tensorflows_runtime(tmp_path):
    made = estimator(tmp_path, "tensorflow")
    [report] = made.preflight(predict_input_fn, "v5e:2x2", "infer", depth="lower").reports
    [finding] = report.findings
    assert (finding.op, finding.kind) == ("AsString", Kind.STRING)


@pytest.mark.slow  # the compiler takes seconds
def test_the_loop_as_it_is_compiled(tmp_path, monkeypatch, checked):
    texts = []

    def noted(files):
        texts.append(files._text(compiler_dump._PROGRAM))
        return real(files)

    real = CompilerDump.collectives
    monkeypatch.setattr(CompilerDump, "collectives", noted)
    made = estimator(tmp_path / "model", "jax").preflight(input_fn, "v5e:2x2")

    [report] = made.reports
    assert report.verdict is Verdict.FITS, str(made)
    assert report.dispatch_steps == LOOP
    [program] = texts
    assert len(re.findall(r"^\s*%\S+ = .* while\(", program, re.MULTILINE)) == 1
    [dispatch] = checked
    aliases = re.findall(r"\{(\d+)\}: \((\d+), \{\}, may-alias\)", program.partition("\n")[0])
    variables = len(dispatch.step.stored)
    assert aliases == [(str(i), str(i)) for i in range(variables)]
    # Both gradients, which share an exchange with the loss.
    assert report.collectives.all_reduces == 2
    assert report.collectives.compiled == {"all-reduce": 1}
    assert report.memory.aliased >= report.variable_bytes
    assert "Compiled as the JAX runtime runs it" in str(made)
