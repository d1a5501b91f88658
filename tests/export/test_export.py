"""Exports by this package alone: layout, signatures, what serves, and what is refused."""

import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf
from support import TESTS

from tpu_estimator_compat.estimator import export
from tpu_estimator_compat.export import directories

from . import describe_saved_model, serving_probe


def test_path_layout_and_return_value(trained, cases, tmp_path):
    before = int(time.time())
    path = trained("plain").export_saved_model(str(tmp_path / "a" / "b"), cases.raw_receiver)
    assert isinstance(path, bytes)
    folder, name = os.path.split(path.decode())
    assert folder == str(tmp_path / "a" / "b")
    assert before <= int(name) <= time.time()
    assert os.listdir(folder) == [name]
    assert describe_saved_model.files(path.decode()) == [
        "saved_model.pb",
        "variables/variables.data-00000-of-00001",
        "variables/variables.index",
    ]


def test_exports_in_one_second_get_directories_of_their_own(trained, cases, tmp_path):
    paths = {trained("plain").export_saved_model(tmp_path, cases.raw_receiver) for _ in range(2)}
    assert len(paths) == 2


def test_two_processes_in_one_second(trained, cases, tmp_path):
    others = {f"temp-{int(time.time()) + i}" for i in range(2)}
    for name in others:
        (tmp_path / name).mkdir()
    path = trained("plain").export_saved_model(str(tmp_path), cases.raw_receiver).decode()
    assert f"temp-{os.path.basename(path)}" not in others
    assert set(os.listdir(tmp_path)) == {*others, os.path.basename(path)}


def test_no_free_timestamp(trained, cases, tmp_path, monkeypatch):
    (tmp_path / "temp-1").mkdir()
    monkeypatch.setattr(
        directories, "get_timestamped_export_dir", lambda base: f"{base}/1".encode()
    )
    monkeypatch.setattr(directories.time, "sleep", lambda seconds: None)
    with pytest.raises(
        RuntimeError, match="Failed to obtain a unique export directory name after 10"
    ):
        trained("plain").export_saved_model(str(tmp_path), cases.raw_receiver)
    assert os.listdir(tmp_path) == ["temp-1"]


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


class Once(tf.compat.v1.train.SessionRunHook):
    """Ends an endless input after one batch."""

    def after_run(self, run_context, run_values):
        run_context.request_stop()


def test_signatures_of_all_kinds(trained, cases, tmp_path):
    path = cases.export_heads(trained("heads"), str(tmp_path)).decode()
    [graph] = describe_saved_model.graphs(path).values()
    methods = {k: s["method"] for k, s in describe_saved_model.signatures(graph).items()}
    classify, regress, predict = (
        f"tensorflow/serving/{kind}" for kind in ("classify", "regress", "predict")
    )
    assert methods == {
        "serving_default": classify,
        "scores": classify,
        "names": classify,
        "margin": regress,
        "everything": predict,
        "one": predict,
        "mine": predict,
        # Classification and regression take serialized examples only.
        "raw:everything": predict,
        "raw:one": predict,
        "raw:mine": predict,
    }


def test_assets_and_extra_assets_are_copied(trained, cases, tmp_path):
    est = trained("tables")
    path = cases.export_tables(est, str(tmp_path)).decode()
    files = describe_saved_model.files(path)
    assert {"assets/words.txt", "assets.extra/notes/words.txt"} < set(files)
    vocabulary = est.params["vocabulary"]
    os.rename(vocabulary, vocabulary + ".away")  # The SavedModel has its own.
    try:
        answers = serving_probe.answer_v1(path, cases.tables_requests())["serving_default"]
    finally:
        os.rename(vocabulary + ".away", vocabulary)
    assert answers["ids"].tolist() == [0, 3, len(cases.WORDS)]
    assert set(answers["name"]) <= {b"red", b"green", b"blue"}


def test_text_and_checkpoint_path(trained, cases, tmp_path):
    est = trained("plain")
    first = os.path.join(est.model_dir, "model.ckpt-0")
    path = est.export_saved_model(
        str(tmp_path), cases.raw_receiver, as_text=True, checkpoint_path=first
    ).decode()
    assert "saved_model.pbtxt" in os.listdir(path)
    exported = describe_saved_model.variables(path)
    assert exported["global_step"] == 0
    np.testing.assert_array_equal(
        exported["tower/hidden"], tf.train.load_variable(first, "tower/hidden")
    )


def test_old_name_warns_and_keeps_default_attributes(trained, cases, tmp_path):
    new = trained("plain").export_saved_model(str(tmp_path / "new"), cases.raw_receiver)
    old = trained("plain").export_savedmodel(str(tmp_path / "old"), cases.raw_receiver)
    graphs = [describe_saved_model.graphs(p.decode())[("serve",)] for p in (new, old)]
    assert [g.meta_info_def.stripped_default_attrs for g in graphs] == [True, False]
    strip = [describe_saved_model.nodes(g)["tower/logits"]["attributes"] for g in graphs]
    assert "transpose_a" not in strip[0]
    assert "transpose_a" in strip[1]
    doc = type(trained("plain")).export_savedmodel.__doc__
    assert "use `export_saved_model` instead" in doc


def test_a_warm_start_is_exported_where_nothing_was_trained(trained, cases, tmp_path):
    source = trained("plain")
    for place in (source.model_dir, source.latest_checkpoint()):
        est = cases.make_estimator(
            cases.CASES["plain"], str(tmp_path / "empty"), warm_start_from=place
        )
        path = est.export_saved_model(str(tmp_path / "out"), cases.raw_receiver).decode()
        np.testing.assert_array_equal(
            describe_saved_model.variables(path)["tower/hidden"],
            source.get_variable_value("tower/hidden"),
        )


def test_training_from_a_saved_model(trained, cases, tmp_path):
    source = trained("plain")
    path = source.export_saved_model(str(tmp_path / "out"), cases.raw_receiver).decode()
    case = cases.CASES["plain"]
    est = cases.make_estimator(case, str(tmp_path / "new"), warm_start_from=path)
    est.train(case.input_fn, steps=1)
    first = tf.train.load_variable(str(tmp_path / "new" / "model.ckpt-0"), "tower/hidden")
    np.testing.assert_array_equal(first, source.get_variable_value("tower/hidden"))


def test_exports_while_training_goes_on(cases, tmp_path):
    """As listeners that export each checkpoint do."""
    case = cases.CASES["keras_layers"]
    est = cases.make_estimator(case, str(tmp_path / "model"))
    paths = []

    class Exporter(tf.compat.v1.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            paths.append(est.export_saved_model(str(tmp_path / "out"), cases.raw_receiver))

    est.train(case.input_fn, steps=3, saving_listeners=[Exporter()])
    steps = [describe_saved_model.variables(path.decode())["global_step"] for path in paths]
    assert steps == [0, 3]


# What is refused.


def test_no_receiver_function(trained, tmp_path):
    with pytest.raises(ValueError, match="An input_receiver_fn must be defined"):
        trained("plain").export_saved_model(str(tmp_path), None)
    with pytest.raises(ValueError, match=r"No valid modes for exporting found\. Got dict_keys"):
        trained("plain").experimental_export_all_saved_models(str(tmp_path), {"x": lambda: None})
    assert os.listdir(tmp_path) == []


def test_no_checkpoint(cases, tmp_path):
    est = cases.make_estimator(cases.CASES["plain"], str(tmp_path / "model"))
    with pytest.raises(ValueError, match=f"Couldn't find trained model at {tmp_path}/model"):
        est.export_saved_model(str(tmp_path / "out"), cases.raw_receiver)
    assert not (tmp_path / "out").exists()


def test_a_receiver_of_another_type(trained, cases, tmp_path):
    with pytest.raises(
        ValueError, match=r"returned a dict \({'x': 1}\) without features and receiver_tensors"
    ):
        trained("plain").export_saved_model(str(tmp_path), lambda: {"x": 1})
    assert os.listdir(tmp_path) == []


def test_features_that_do_not_fit_the_model(trained, tmp_path):
    def receiver(shape, make=export.ServingInputReceiver):
        x = tf.compat.v1.placeholder(tf.float32, shape, name="given")
        return lambda: make(x, x)

    def bare():
        return receiver([None, 4])()

    with pytest.raises(KeyError, match="x") as caught:
        trained("plain").export_saved_model(str(tmp_path), bare)
    [note] = caught.value.__notes__
    assert "'feature': <tf.Tensor 'given:0' shape=(None, 4)" in note
    assert "TensorServingInputReceiver" in note

    def wide():
        x = tf.compat.v1.placeholder(tf.float32, [None, 5], name="given")
        return export.ServingInputReceiver({"x": x}, x)

    with pytest.raises(ValueError, match="Dimensions must be equal") as caught:
        trained("plain").export_saved_model(str(tmp_path), wide)
    assert "'x': <tf.Tensor 'given:0' shape=(None, 5)" in caught.value.__notes__[0]
    assert os.listdir(tmp_path) == []


def test_outputs_that_need_what_is_not_fed_are_left_out(trained, tmp_path):
    def receiver():
        x = tf.compat.v1.placeholder(tf.float32, [None, 4])
        return export.ServingInputReceiver({"x": x}, tf.compat.v1.placeholder(tf.float32))

    path = trained("plain").export_saved_model(str(tmp_path), receiver).decode()
    [graph] = describe_saved_model.graphs(path).values()
    assert not graph.signature_def  # As the original: it logs what was left out, and why.


def test_variables_that_the_checkpoint_lacks(trained, cases, tmp_path):
    def more(features, labels, mode, params):
        tf.compat.v1.get_variable("more", [2])
        return cases.plain_model_fn(features, labels, mode, params)

    def wider(features, labels, mode, params):
        tf.compat.v1.get_variable("tower/output", [2])
        return cases.plain_model_fn(features, labels, mode, params)

    model_dir = trained("plain").model_dir
    est = cases.make_estimator(cases.Case(more, None, None, None), model_dir)
    with pytest.raises(ValueError, match="Could not load all requested variables") as caught:
        est.export_saved_model(str(tmp_path), cases.raw_receiver)
    assert "Variable 'more' is not in the checkpoint" in str(caught.value)
    with pytest.raises(ValueError, match="The passed save_path is not a valid checkpoint: nope"):
        trained("plain").export_saved_model(
            str(tmp_path), cases.raw_receiver, checkpoint_path="nope"
        )
    assert os.listdir(tmp_path) == []


def test_a_directory_that_cannot_be_written(trained, cases, tmp_path):
    (tmp_path / "file").write_text("")
    base = str(tmp_path / "file" / "exports")
    with pytest.raises(
        tf.errors.OpError, match=re.escape(f"Cannot export to export_dir_base={base!r}")
    ):
        trained("plain").export_saved_model(base, cases.raw_receiver)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_export_leaves_nothing(error, trained, cases, tmp_path, monkeypatch):
    def stop(*unused_args, **unused_kwargs):
        [temporary] = os.listdir(tmp_path)
        assert temporary.startswith("temp-")
        assert "variables" in os.listdir(tmp_path / temporary)
        raise error("stopped")

    monkeypatch.setattr(tf.compat.v1.saved_model.Builder, "save", stop)
    with pytest.raises(error, match="stopped"):
        trained("plain").export_saved_model(str(tmp_path), cases.raw_receiver)
    assert os.listdir(tmp_path) == []


def test_an_extra_asset_that_does_not_exist(trained, cases, tmp_path):
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
        trained("plain").export_saved_model(
            str(tmp_path), cases.raw_receiver, assets_extra={"a": "/nowhere"}
        )
    assert os.listdir(tmp_path) == []


SCRIPT = """
import os, sys
import tensorflow.compat.v1 as tf
{before}
sys.path.insert(0, {here!r})
from export import export_driver
export_driver.install_namespace("ours")
from export import export_cases as cases
case = cases.CASES[{name!r}]
est = cases.make_estimator(case, {model_dir!r})
{action}
"""


def run_script(name, model_dir, before="", action=""):
    """Runs a script with a case's estimator in a process of its own."""
    code = SCRIPT.format(
        here=str(TESTS), name=name, model_dir=model_dir, before=before, action=action
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.slow
def test_a_killed_export_leaves_nothing_that_a_server_sees(trained, tmp_path):
    out = str(tmp_path / "out")
    action = "tf.saved_model.Builder.save = lambda *unused: os._exit(9)\n"
    done = run_script(
        "plain", trained("plain").model_dir, action=f"{action}case.export(est, {out!r})"
    )
    assert done.returncode == 9, done.stderr[-2000:]
    [left] = os.listdir(out)
    assert left.startswith("temp-")


@pytest.mark.slow
def test_scripts_that_switch_v2_behavior_off(trained, cases, tmp_path):
    """Control flow and variables are the same as without."""
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
        ops = [node["op"] for node in describe_saved_model.nodes(graph).values()]
        assert ops == [node["op"] for node in describe_saved_model.nodes(found[tags]).values()]
        assert not {"VariableV2", "Switch", "Merge", "Enter"} & set(ops)
    request = cases.default_request()
    ours = serving_probe.answer_v1(os.path.join(out, name), request)["serving_default"]
    theirs = serving_probe.answer_v1(expected, request)["serving_default"]
    for key, value in theirs.items():
        np.testing.assert_array_equal(ours[key], value)
