import os

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.estimator import export

from . import describe_saved_model, serving_probe
from .scripts import run_script


@pytest.mark.parametrize(
    "name", ["plain", "bare", "heads", "tables", "convnet", "modes", "keras_layers", "sparse"]
)
def test_serves_what_predict_says(name, trained, cases, tmp_path):
    case = cases.CASES[name]
    path = case.export(trained(name), str(tmp_path)).decode()
    requests = case.requests()
    by_session = serving_probe.answer_v1(path, requests)
    by_load = serving_probe.answer_v2(path, requests)
    for signature, answers in by_session.items():
        for key, value in answers.items():
            np.testing.assert_array_equal(value, by_load[signature][key])
    if name in ("plain", "convnet", "modes", "keras_layers"):
        found = list(trained(name).predict(lambda params: {"x": cases.points(3)}, hooks=[Once()]))
        for key, value in by_session["serving_default"].items():
            np.testing.assert_allclose(value, [f[key] for f in found], rtol=1e-6)


class Once(tf2.compat.v1.train.SessionRunHook):
    """Ends an endless input after one batch."""

    def after_run(self, run_context, run_values):
        run_context.request_stop()


def test_exports_while_training_goes_on(cases, tmp_path):
    """As listeners that export each checkpoint do."""
    case = cases.CASES["keras_layers"]
    est = cases.make_estimator(case, str(tmp_path / "model"))
    paths = []

    class Exporter(tf2.compat.v1.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            paths.append(est.export_saved_model(str(tmp_path / "out"), cases.raw_receiver))

    est.train(case.input_fn, steps=3, saving_listeners=[Exporter()])
    steps = [describe_saved_model.variables(path.decode())["global_step"] for path in paths]
    assert steps == [0, 3]


# What is refused.


def test_features_that_do_not_fit_the_model(trained, tmp_path):
    def receiver(shape, make=export.ServingInputReceiver):
        x = tf2.compat.v1.placeholder(tf2.float32, shape, name="given")
        return lambda: make(x, x)

    with pytest.raises(KeyError, match="x") as caught:
        trained("plain").export_saved_model(str(tmp_path), lambda: receiver([None, 4])())
    [note] = caught.value.__notes__
    assert "'feature': <tf.Tensor 'given:0' shape=(None, 4)" in note
    assert "TensorServingInputReceiver" in note

    def wide():
        x = tf2.compat.v1.placeholder(tf2.float32, [None, 5], name="given")
        return export.ServingInputReceiver({"x": x}, x)

    with pytest.raises(ValueError, match="Dimensions must be equal") as caught:
        trained("plain").export_saved_model(str(tmp_path), wide)
    assert "'x': <tf.Tensor 'given:0' shape=(None, 5)" in caught.value.__notes__[0]
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_scripts_that_switch_v2_behavior_off(trained, cases, tmp_path):
    """Variables are those of TensorFlow 1, control flow is the same as without; so are answers."""
    out = str(tmp_path / "out")
    done = run_script(
        "modes",
        trained("modes").model_dir,
        before="tf.disable_v2_behavior()",
        action=f"case.export(est, {out!r})",
    )
    assert done.returncode == 0, done.stderr[-2000:]
    [name] = os.listdir(out)
    expected = cases.export_modes(trained("modes"), str(tmp_path / "expected")).decode()
    found = describe_saved_model.graphs(os.path.join(out, name))
    for tags, graph in describe_saved_model.graphs(expected).items():
        before = [node["op"] for node in describe_saved_model.nodes(graph).values()]
        ops = [node["op"] for node in describe_saved_model.nodes(found[tags]).values()]
        assert ops.count("VariableV2") == before.count("VarHandleOp") > 0
        assert not {"VarHandleOp", "Switch", "Merge", "Enter"} & set(ops)
    request = cases.default_request()
    for answer in (serving_probe.answer_v1, serving_probe.answer_v2):
        ours = answer(os.path.join(out, name), request)["serving_default"]
        theirs = answer(expected, request)["serving_default"]
        for key, value in theirs.items():
            np.testing.assert_array_equal(ours[key], value)


def test_outputs_that_need_what_is_not_fed_are_left_out(trained, tmp_path):
    def receiver():
        x = tf2.compat.v1.placeholder(tf2.float32, [None, 4])
        return export.ServingInputReceiver({"x": x}, tf2.compat.v1.placeholder(tf2.float32))

    path = trained("plain").export_saved_model(str(tmp_path), receiver).decode()
    [graph] = describe_saved_model.graphs(path).values()
    assert not graph.signature_def  # As the original: it logs what was left out, and why.


def test_raw_receivers_of_eager_tensors():
    make = export.build_raw_serving_input_receiver_fn({"eager": tf.zeros([2, 3])})
    with tf.Graph().as_default():
        assert make().features["eager"].shape.as_list() == [None, 3]


def test_supervised_receivers_of_an_input_fn():
    def input_fn(size):
        return tf.data.Dataset.from_tensors(({"x": tf.zeros([size, 3])}, tf.zeros([size])))

    make = export.build_supervised_input_receiver_fn_from_input_fn(input_fn, size=4)
    with tf.Graph().as_default():
        made = make()
    assert made.features["x"].shape.as_list() == [None, 3]
    assert set(made.receiver_tensors) == {"x", "label"}
