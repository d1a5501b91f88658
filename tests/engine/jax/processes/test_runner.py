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
STEPS = 15
PROCESS = pathlib.Path(__file__).with_name("process.py")

run = functools.partial(clusters.run, PROCESS)
Cluster = functools.partial(clusters.Cluster, script=PROCESS)


def assert_same_variables(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        atol = TOLERANCE * np.abs(value).max()
        np.testing.assert_allclose(found[name], value, atol=atol, err_msg=name)


def scalars(directory):
    """Values by (tag, step) of the events of training in a directory."""
    return {
        (value.tag, event.step): tf.make_ndarray(value.tensor).item()
        for path in directory.glob("events*")
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
        if event.step < STEPS
    }


def test_two_processes_equal_one(tmp_path):
    [alone] = run(tmp_path, 1, "train", model_dir=str(tmp_path / "alone"))
    processes = run(tmp_path, 2, "train", model_dir=str(tmp_path / "model"))
    for found in processes:
        assert found["step"] == STEPS
        assert_same_variables(found["variables"], alone["variables"])
        assert_same_variables(found["split_variables"], alone["split_variables"])
        common = found["losses"].keys() & alone["losses"].keys()
        assert len(common) >= 5
        for step in common:
            assert found["losses"][step] == pytest.approx(alone["losses"][step], rel=TOLERANCE)
        assert found["saved"] == str(tmp_path / "model" / "model.ckpt-15")
        assert found["results"] == pytest.approx(alone["results"], rel=TOLERANCE)
        np.testing.assert_allclose(found["predictions"], alone["predictions"], rtol=1e-4)
    written, expected = (scalars(tmp_path / name / "host") for name in ("model", "alone"))
    assert {value for (tag, _), value in written.items() if tag == "losses"} == {4}
    assert written == pytest.approx(expected, rel=TOLERANCE)
    files = [len(list((tmp_path / name / "host").iterdir())) for name in ("model", "alone")]
    assert files[0] == files[1]
    assert len(list((tmp_path / "model" / "eval").glob("events*"))) == 1


@pytest.fixture(scope="module")
def pod(tmp_path_factory):
    """What one process finds, and what two find: see `process.pod`."""
    folder = tmp_path_factory.mktemp("pod")
    [alone] = run(folder, 1, "pod", model_dir=str(folder / "alone"))
    return alone, run(folder, 2, "pod", model_dir=str(folder / "model"))


def test_a_replica_spans_processes(pod):
    """The second process reads other elements, too: what the first has read counts."""
    alone, processes = pod
    for found in processes:
        for name in ("variables", "results", "predictions"):
            assert_same_variables(
                *(
                    {"": of} if isinstance(of, list) else of
                    for of in (x["spans"][name] for x in (found, alone))
                )
            )
        common = found["spans"]["losses"].keys() & alone["spans"]["losses"].keys()
        assert common
        for step in common:
            expected = alone["spans"]["losses"][step]
            assert found["spans"]["losses"][step] == pytest.approx(expected, rel=TOLERANCE)
    refused = "ValueError: A replica has devices of 2 processes, and not all of the processes came"
    assert processes[1]["spans"]["alone"].startswith(refused)


def test_every_process_has_the_tables(pod):
    alone, processes = pod
    assert any("embedding" in name for name in alone["tables"]["columns"])
    for found in processes:
        for name in ("columns", "dicts", "results"):
            assert_same_variables(found["tables"][name], alone["tables"][name])
        expected = alone["tables"]["predictions"]
        assert len(expected) == 16
        np.testing.assert_allclose(found["tables"]["predictions"], expected, rtol=1e-4)


def test_processes_share_evaluations_and_predictions(pod):
    alone, [chief, worker] = ({**pod[0]["shares"]}, [x["shares"] for x in pod[1]])
    assert chief["alone"] == pytest.approx(alone["alone"], rel=TOLERANCE)
    assert "alone" not in worker
    for found in (chief, worker):
        for name in ("shared", "chiefs", "few"):
            assert found[name] == pytest.approx(alone[name], rel=TOLERANCE)
    assert chief["uneven"].startswith("RuntimeError: Process 1 of 2 ended an evaluation or predic")
    assert worker["uneven"].startswith("MachineLostError: This machine stopped because machine 0")


def test_who_is_the_chief_without_a_word_around(tmp_path):
    chief, worker = run(tmp_path, 2, "introduced", model_dir=str(tmp_path / "model"))
    assert (chief["is_chief"], worker["is_chief"]) == (True, False)
    assert chief["saved"] == worker["saved"] == str(tmp_path / "model" / "model.ckpt-2")
    assert len(list((tmp_path / "model").glob("events*"))) == 1


def test_how_trainings_end(tmp_path):
    chief, worker = run(tmp_path, 2, "ends", model_dir=str(tmp_path / "model"))
    for found in (chief, worker):
        assert found["even"]["error"] == ""
        assert found["even"]["saved"].endswith("model.ckpt-7")
        uneven = "ValueError: The data of machine(s) [1] ended while machine(s) [0] had more"
        assert found["uneven"]["error"].startswith(uneven)
        assert found["uneven"]["saved"].endswith("model.ckpt-5")
        assert found["nan"]["error"].startswith("NanLossDuringTrainingError")
    assert chief["nan"]["steps"] == worker["nan"]["steps"]
    assert worker["fails"]["error"] == "ValueError: this hook fails"
    lost = "MachineLostError: This machine stopped because machine 1 of 2 failed"
    assert chief["fails"]["error"].startswith(lost)


def started(tmp_path):
    return lambda: len(list(tmp_path.glob("model-[01]"))) == 2


def test_sigterm_saves_and_stops_all(tmp_path):
    signalled = 1
    with Cluster(tmp_path, 2) as cluster:
        cluster.start("long", model_dir=str(tmp_path / "model"))
        wait_for(started(tmp_path))
        cluster.processes[signalled].popen.send_signal(signal.SIGTERM)
        found = cluster.results()
        log = cluster.processes[1 - signalled].log
    assert found[signalled]["ended"] == "exit 143"
    assert (found[1 - signalled]["ended"], found[1 - signalled]["error"]) == ("returned", "")
    assert found[0]["step"] == found[1]["step"] > 0
    assert all(f["saved"].endswith(f"model.ckpt-{found[0]['step']}") for f in found)
    assert f"Training stops here because machine {signalled} of 2 stopped." in log


@pytest.mark.parametrize(
    ("kill", "lost"), [(signal.SIGKILL, 1), pytest.param(signal.SIGSTOP, 0, marks=pytest.mark.full)]
)
def test_a_lost_process_ends_the_other(kill, lost, tmp_path):
    """Its process ended, or it gives no sign of life."""
    with Cluster(tmp_path, 2) as cluster:
        cluster.start("long", model_dir=str(tmp_path / "model"))
        wait_for(started(tmp_path))
        cluster.processes[lost].popen.send_signal(kill)
        begun = time.monotonic()
        other = cluster.processes[1 - lost]
        code = other.wait(60)
        seconds = time.monotonic() - begun
    assert seconds < 60
    if code == 0:  # it has seen a broken connection before JAX has missed the other
        assert "MachineLostError" in other.result()["error"]
    else:
        assert "this most likely indicates that another task died" in other.log.lower()
    assert "training goes on from the last checkpoint" in other.log


def test_processes_that_cannot_join(tmp_path):
    with Cluster(tmp_path, 2) as cluster:
        cluster.start("refused", only=[0], model_dir=str(tmp_path / "model"))
        [found] = cluster.results()
    assert "could not join the others" in found["lonely"]
    assert "No connection with localhost:" in found["lonely"]
    assert "session_creation_timeout_secs" in found["lonely"]
    assert "JAX is in use already" in found["late"]
