import json

import pytest

from doctor.answers import all_well, give
from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.engine.jax import installation as jax_installation
from tpu_estimator_compat.tools.doctor import checkpoints, probing, sums, versions

REAL = probing.run


@pytest.fixture
def answers(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setattr(versions, "check", lambda chips: [])
    monkeypatch.setattr(jax_installation, "is_installed", lambda: True)
    answers = all_well()
    give(monkeypatch, answers)
    return answers


def test_all_is_well(answers, capsys):
    assert main(["doctor"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1].startswith("Doctor: no check failed: ")
    assert "training jax …" in printed.err.splitlines()


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
