import json

import pytest

from doctor.answers import all_well, give
from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.engine.jax import installation as jax_installation
from tpu_estimator_compat.tools.doctor import (
    checkpoints,
    devices,
    probing,
    sums,
    training,
    versions,
)
from tpu_estimator_compat.tools.doctor.examination import Examination
from tpu_estimator_compat.tools.doctor.probing import Outcome
from tpu_estimator_compat.tools.doctor.report import Status

REAL = probing.run
DEAD = Outcome(None, "was ended by SIGSEGV. It wrote nothing.", "Look.")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setattr(versions, "check", lambda chips: [])
    monkeypatch.setattr(jax_installation, "is_installed", lambda: True)


def examine(monkeypatch, answers):
    calls = give(monkeypatch, answers)
    return list(Examination(None, 60.0).results()), calls


def test_all_is_well(monkeypatch):
    found, calls = examine(monkeypatch, all_well())
    statuses = [f.status for f in found]
    assert statuses.count(Status.NOT_MADE) == 1  # no TF_CONFIG
    assert {*statuses} == {Status.OK, Status.FIGURE, Status.NOT_MADE}
    assert len(calls) == 9
    assert all(variables["TF_CONFIG"] is None for _, _, variables in calls)


@pytest.mark.parametrize(
    "function", all_well(), ids=lambda f: f"{f.__module__.split('.')[-1]}.{f.__name__}"
)
def test_each_probe_that_dies_is_a_failure(monkeypatch, function):
    found, _ = examine(monkeypatch, {**all_well(), function: DEAD})
    failures = [f for f in found if f.status is Status.FAILURE]
    assert failures
    assert all("was ended by SIGSEGV" in f.text and f.advice for f in failures)


def test_what_cannot_be_compared_says_so(monkeypatch):
    found, calls = examine(monkeypatch, {**all_well(), training.observe: DEAD})
    said = [f.text for f in found if f.check == training.CHECK]
    assert said[1:] == ["There is nothing to compare with"]
    found, calls = examine(monkeypatch, {**all_well(), devices.observe: DEAD})
    assert len(calls) == 2
    assert "No step on JAX: its devices failed, see above" in [f.text for f in found]


def test_without_jax(monkeypatch):
    monkeypatch.setattr(jax_installation, "is_installed", lambda: False)
    found, calls = examine(monkeypatch, all_well())
    assert {arguments.get("runtime", "tensorflow") for _, arguments, _ in calls} == {"tensorflow"}
    [said] = [f for f in found if "JAX, which is not installed" in f.text]
    assert said.status is Status.NOT_MADE
    assert said.advice == "pip install 'jax>=0.10.2,<=0.12.0.1'"


def test_an_accelerator_is_compared_with_jax_on_the_cpu_too(monkeypatch):
    answers = all_well()
    answers[devices.observe] = {**answers[devices.observe], "platform": "tpu"}
    _, calls = examine(monkeypatch, answers)
    asked = [(a["runtime"], v.get("JAX_PLATFORMS")) for f, a, v in calls if f is training.observe]
    assert asked == [("tensorflow", None), ("tensorflow", None), ("jax", None), ("jax", "cpu")]


def test_processes_of_a_cluster_are_asked_too(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"chief": ["a:1"], "worker": ["b:1"]}}')
    found, calls = examine(monkeypatch, all_well())
    asked = [(a["runtime"], "TF_CONFIG" in v) for f, a, v in calls if f is sums.observe]
    assert asked == [("tensorflow", True), ("jax", True), ("tensorflow", False), ("jax", False)]
    assert Status.NOT_MADE not in {f.status for f in found}


def test_workers_of_parameter_servers_are_not_asked_for_sums(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"chief": ["a:1"], "ps": ["b:1"]}}')
    found, calls = examine(monkeypatch, all_well())
    assert all(variables["TF_CONFIG"] is None for _, _, variables in calls)
    assert [f.text for f in found if f.status == Status.NOT_MADE] == [
        "TF_CONFIG names parameter servers, whose workers exchange no sums"
    ]


def test_one_host_of_several_makes_no_steps_alone(monkeypatch):
    answers = all_well()
    answers[devices.observe] = {**answers[devices.observe], "platform": "tpu", "hosts": 4}
    found, calls = examine(monkeypatch, answers)
    assert [v.get("JAX_PLATFORMS") for f, _, v in calls if f is training.observe] == [None, "cpu"]
    assert "JAX on tpu spans 4 hosts; doctor tests single-host devices only" in [
        f.text for f in found if f.status is Status.NOT_MADE
    ]


@pytest.fixture
def answers(monkeypatch):
    answers = all_well()
    give(monkeypatch, answers)
    return answers


def test_the_command_where_all_is_well(answers, capsys):
    assert main(["doctor"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1].startswith("Doctor: no check failed: ")
    assert printed.err == ""


def test_a_wrong_sum(answers, capsys, tmp_path):
    answers[sums.observe]["sum"] = [2.0]
    assert main(["doctor", "--json", "--report", str(tmp_path / "report.md")]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["exit_status"] == 1
    failures = [f["text"] for f in told["findings"] if f["status"] == "failure"]
    assert len(failures) == 2
    assert all(text.endswith("the sum is [2.0], and the host's is [3.0]") for text in failures)
    assert told["verdict"] in (tmp_path / "report.md").read_text()


def test_a_model_dir_that_cannot_be_made(answers, capsys, monkeypatch):
    """Also for a user who may write everywhere. This one probe is made."""
    given = probing.run

    def run(function, arguments, time_limit, variables=None):
        made = REAL if function is checkpoints.observe else given
        return made(function, arguments, time_limit, variables)

    monkeypatch.setattr(probing, "run", run)
    assert main(["doctor", "--json", "--model_dir", "/proc/doctor"]) == 1
    told = json.loads(capsys.readouterr().out)["findings"]
    [failure] = [f for f in told if f["status"] == "failure"]
    assert failure["check"] == "checkpoint"
    assert failure["text"].startswith("/proc/doctor: ended with exit status 1. Its last lines: ")
    assert "See that /proc/doctor can be written to" in failure["advice"]
