import functools
import pathlib
import signal
import time

import numpy as np
import pytest
import tensorflow as tf
from support import cluster as clusters
from support.cluster import wait_for

pytestmark = pytest.mark.slow

TOLERANCE = 1e-5
WORKER = pathlib.Path(__file__).with_name("worker.py")

run = functools.partial(clusters.run, WORKER)
Cluster = functools.partial(clusters.Cluster, script=WORKER)


def assert_same_variables(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)


def events(directory):
    found = []
    for path in sorted(directory.glob("events*")):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            found += [(value.tag, event.step) for value in event.summary.value]
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    directory = tmp_path_factory.mktemp("alone")
    [found] = run(directory, 1, "train", model_dir=str(directory / "model"))
    return found


@pytest.mark.parametrize(
    ("count", "v1_behavior"),
    [(2, False), (2, True), pytest.param(4, False, marks=pytest.mark.full)],
)
def test_training_equals_one_process(count, v1_behavior, tmp_path, alone):
    model = str(tmp_path / "model")
    machines = run(tmp_path, count, "train", model_dir=model, v1_behavior=v1_behavior)
    for index, found in enumerate(machines):
        assert found["step"] == 25
        assert found["calls"] == [[index, 16 // count]]
        assert_same_variables(found["variables"], alone["variables"])
        for step, loss in found["losses"].items():
            if step in alone["losses"]:
                assert loss == pytest.approx(alone["losses"][step], rel=TOLERANCE)
        assert found["saved"] == str(tmp_path / "model" / "model.ckpt-25")
        assert found["results"] == pytest.approx(alone["results"], rel=TOLERANCE)
        assert found["predictions"] == alone["predictions"]


def test_only_the_chief_writes_and_the_others_need_no_files(tmp_path):
    [first, _] = run(tmp_path, 2, "own_dirs", model_dir=str(tmp_path / "model"), steps=10)
    assert first["step"] == 10
    chief, worker = tmp_path / "model-chief", tmp_path / "model-worker"
    assert (chief / "model.ckpt-10.index").exists()
    assert {tag for tag, _ in events(chief)} >= {"loss", "global_step/sec"}
    assert not worker.exists() or not list(worker.iterdir())
    again = run(tmp_path, 2, "own_dirs", model_dir=str(tmp_path / "model"), steps=15)
    for found in again:
        assert found["step"] == 15
        assert_same_variables(found["variables"], again[0]["variables"])
    assert (chief / "model.ckpt-15.index").exists()


def test_all_stop_where_one_stops(tmp_path):
    found = run(tmp_path, 2, "one_stops", model_dir=str(tmp_path / "model"), fail=False)
    [chief, worker] = found
    assert chief["error"] == worker["error"] == ""
    assert 12 <= worker["step"] == chief["step"] < 20
    assert chief["saved"].endswith(f"model.ckpt-{chief['step']}")


def test_where_one_fails_the_others_say_so(tmp_path):
    [chief, worker] = run(tmp_path, 2, "one_stops", model_dir=str(tmp_path / "model"), fail=True)
    assert worker["error"] == "ValueError: this hook fails"
    assert "MachineLostError: This machine stopped because machine 1 of 2 failed" in chief["error"]
    assert chief["saved"].endswith(f"model.ckpt-{chief['step']}")


def test_uneven_data_is_an_error_after_the_checkpoint(tmp_path):
    for found in run(tmp_path, 2, "uneven", model_dir=str(tmp_path / "model")):
        assert found["step"] == 7
        assert "ValueError: The data of machine(s) [1] ended while machine(s) [0]" in found["error"]
        assert found["saved"].endswith("model.ckpt-7")


def test_the_end_of_everyones_data_ends_training(tmp_path):
    for found in run(tmp_path, 2, "even", model_dir=str(tmp_path / "model")):
        assert (found["step"], found["error"]) == (7, "")
        assert found["saved"].endswith("model.ckpt-7")


# A silent one is noticed after half a minute.
@pytest.mark.parametrize(
    "kill", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.full)]
)
def test_a_lost_worker(kill, tmp_path):
    model = tmp_path / "model"
    with Cluster(tmp_path, 2) as cluster:
        cluster.start("long", model_dir=str(model))
        chief, worker = cluster.processes
        state = model / "checkpoint"  # names a checkpoint once it is whole
        wait_for(lambda: state.exists() and '"model.ckpt-100"' in state.read_text())
        worker.popen.send_signal(kill)
        started = time.monotonic()
        error = chief.result()["error"]
        assert time.monotonic() - started < 90
    assert error.startswith("MachineLostError: Another machine of the cluster failed")
    assert ", task 0 of worker in TF_CONFIG; no step" in error
    assert f"goes on from {tf.train.latest_checkpoint(str(model))}." in error
    last = tf.train.latest_checkpoint(str(model))
    step = int(last.rpartition("-")[2])
    assert step >= 100
    for found in run(tmp_path, 2, "train", model_dir=str(model), steps=step + 5):
        assert found["step"] == step + 5
        assert min(map(int, found["losses"])) > step


@pytest.mark.parametrize("signalled", [[0], pytest.param([1], marks=pytest.mark.full), [0, 1]])
def test_sigterm_saves_and_stops_all(signalled, tmp_path):
    model = tmp_path / "model"
    with Cluster(tmp_path, 2) as cluster:
        cluster.start("preempted", model_dir=str(model))
        popens = [process.popen for process in cluster.processes]
        wait_for(lambda: len(list(tmp_path.glob("model-*"))) == 2 or any(p.poll() for p in popens))
        time.sleep(3)  # within the loop, which would go on for hours
        for index in signalled:
            popens[index].send_signal(signal.SIGTERM)
        found = cluster.results()
        logs = [process.log for process in cluster.processes]
    ended = ["exit 143" if index in signalled else "returned" for index in range(2)]
    assert [f["ended"] for f in found] == ended
    assert found[0]["step"] == found[1]["step"] > 0
    assert all(f["saved"].endswith(f"model.ckpt-{found[0]['step']}") for f in found)
    for index in {0, 1} - set(signalled):
        assert f"Training stops here because machine {signalled[0]} of 2 stopped." in logs[index]


def test_host_call_and_metrics_see_all_machines(tmp_path):
    [one] = run(tmp_path, 1, "train", model_dir=str(tmp_path / "one"), steps=10)
    found = run(tmp_path, 2, "host_calls", model_dir=str(tmp_path / "model"))
    for machine in found:
        assert machine["results"] == pytest.approx(found[0]["results"])
    assert found[0]["results"]["loss"] == pytest.approx(one["results"]["loss"], rel=TOLERANCE)
    written = events(tmp_path / "model" / "host")
    assert len(list((tmp_path / "model" / "host").iterdir())) == 1
    assert [step for tag, step in written if tag == "rows"] == list(range(10))
    values = [
        tf.make_ndarray(value.tensor).item()
        for path in (tmp_path / "model" / "host").iterdir()
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
        if value.tag == "rows"
    ]
    assert values == [16] * 10
    assert len(list((tmp_path / "model" / "eval").glob("events*"))) == 1


def test_a_plain_estimator_exchanges_gradients(tmp_path):
    machines = run(tmp_path, 2, "plain_estimator", model_dir=str(tmp_path / "model"))
    for found in machines:
        assert_same_variables(found["variables"], machines[0]["variables"])
        losses = [found["losses"][step] for step in sorted(found["losses"], key=int)]
        assert len(losses) == 20
        assert losses[-1] < losses[0]


def test_keras_fit_on_two_machines(tmp_path):
    machines = run(tmp_path, 2, "fit", model_dir=str(tmp_path / "model"))
    for found in machines:
        assert found["loss"] == pytest.approx(machines[0]["loss"], rel=TOLERANCE)
        assert found["loss"][1] < found["loss"][0]
        assert found["step"] == 25
        assert_same_variables(found["variables"], machines[0]["variables"])
    assert (tmp_path / "model" / "model.ckpt-20.index").exists()


def test_machines_send_each_other_values(tmp_path):
    w, own = np.float32(1), np.arange(8, dtype=np.float32).reshape(2, 4)
    for _ in range(2):
        w -= 0.01 * np.mean(2 * (own[::-1] * w - own) * own[::-1])
    for found in run(tmp_path, 2, "exchanges", model_dir=str(tmp_path / "model")):
        assert found["w"] == pytest.approx(w, rel=TOLERANCE)


def test_different_graphs_are_refused(tmp_path):
    for found in run(tmp_path, 2, "different_graphs", model_dir=str(tmp_path / "model")):
        assert "model_fn built another graph on machine(s) [1]" in found["error"]


def test_a_chief_that_cannot_start(tmp_path):
    with Cluster(tmp_path, 2) as cluster:
        cluster.start("chief_cannot_start", model_dir=str(tmp_path / "model"))
        chief, worker = cluster.results()
        assert chief["error"] == "ValueError: no first values"
        assert "machine 0 of 2 failed" in worker["error"]
        # The worker has nobody to tell: it would wait for a minute.
        assert "timed out" not in cluster.processes[1].log


@pytest.mark.parametrize("stop_early", [pytest.param(False, marks=pytest.mark.full), True])
def test_train_and_evaluate_on_all_and_the_chief_stops_them(tmp_path, stop_early):
    model = str(tmp_path / "model")
    found = run(tmp_path, 2, "schedule", model_dir=model, stop_early=stop_early)
    steps = {machine["step"] for machine in found}
    assert len(steps) == 1
    assert (steps == {40}) == (not stop_early)
    assert [machine["returned"] for machine in found] == [None, None]
    assert {machine["saved"] for machine in found} == {f"{model}/model.ckpt-{steps.pop()}"}


def test_a_worker_that_never_comes(tmp_path):
    with Cluster(tmp_path, 2) as cluster:
        cluster.start("lonely", only=[0], model_dir=str(tmp_path / "model"))
        [found] = cluster.results()
    assert "could not join the other workers" in found["error"]
    assert "No connection with localhost:" in found["error"]
    assert "session_creation_timeout_secs" in found["error"]


def test_a_process_that_uses_tensorflow_too_early(tmp_path):
    with Cluster(tmp_path, 2) as cluster:
        cluster.start("too_late", only=[0], model_dir=str(tmp_path / "model"))
        [found] = cluster.results()
    assert "TensorFlow is in use already" in found["error"]
