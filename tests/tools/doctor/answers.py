"""What probes answer on a machine where all is well, and an examination that is given answers."""

import copy
from typing import Any

import pytest

from tpu_estimator_compat.tools.doctor import checkpoints, devices, probing, sums, training

CPU = {"platform": "cpu", "kind": "CPU", "used": None, "limit": None}
DRAWN = [
    {"places": [10.0, 20.0, 30.0], "zeros": [250.0, 260.0, 258.0]},
    {"places": [10.0, 20.0, 30.0], "zeros": [250.0, 260.0, 258.0]},
    {"places": [40.0, 50.0, 60.0], "zeros": [251.0, 259.0, 258.0]},
]


def trained() -> dict[str, Any]:
    networks = {
        name: {
            "losses": [2.0, 1.5, loss],
            "updates": {f"{name}/kernel": [0.5, -1.0], f"{name}/bias": [0.0, 0.25]},
            "seconds": 0.5,
        }
        for name, loss in training.RECORDED.items()
    }
    return {
        "platform": "cpu",
        "networks": networks,
        "dropout": {"rate": 0.25, "elements": 3072, "drawn": copy.deepcopy(DRAWN)},
        "speed": {"steps_per_second": 1000.0, "dispatch": 0.001, "memory": 1e9},
    }


def all_well() -> dict[Any, Any]:
    """What each probe returns, by its function."""
    return {
        devices.observe: {"chips": 0, "gpus": 0, "hosts": 1, "platform": "cpu", "devices": [CPU]},
        devices.observe_runtime: {
            "taken": "tensorflow",
            "replicas": 1,
            "asked": "auto",
            "chips": 0,
            "tensorflow": False,
            "jax": True,
        },
        training.observe: trained(),
        sums.observe: {"sum": [3.0], "expected": [3.0], "replicas": 4, "hosts": 1},
        checkpoints.observe: {"variables": 14, "differing": [], "lost": []},
    }


def give(monkeypatch: pytest.MonkeyPatch, answers: dict[Any, Any]) -> list[tuple[Any, Any, Any]]:
    """Has probes answer this, or fail with an `Outcome` of its own; returns the calls."""
    calls = []

    def run(function, arguments, time_limit, variables=None):
        calls.append((function, arguments, variables))
        answer = answers[function]
        return answer if isinstance(answer, probing.Outcome) else probing.Outcome(answer)

    monkeypatch.setattr(probing, "run", run)
    return calls
