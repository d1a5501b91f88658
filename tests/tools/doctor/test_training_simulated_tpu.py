"""Steps and sums on all cores of a simulated TPU: TensorFlow's own TPU code runs them."""

from __future__ import annotations

import json
import pathlib

import pytest

from tpu_estimator_compat.tools.doctor import devices, sums, training
from tpu_estimator_compat.tools.doctor.check_results import Status

OBSERVE = f"""
import json, os, sys

sys.path.insert(0, {str(pathlib.Path(__file__).parents[2])!r})
os.environ["TF_CONFIG"] = "{{}}"  # the CPU is split here
from support.simulated_tpu.devices import split_cpu
from support.simulated_tpu.runtime import SimulatedTPU, simulated
from tpu_estimator_compat.tools.doctor import devices, sums, training

split_cpu(5)
training._speed = lambda train: {{"steps_per_second": 1.0, "dispatch": 0.0, "memory": 0.0}}
with simulated(SimulatedTPU((2, 2, 1, 1))):
    print(json.dumps([
        devices.observe_runtime(),
        sums.observe("tensorflow", 60),
        training.observe("tensorflow", False),
    ]))
"""
REFERENCE = """
import json
from tpu_estimator_compat.tools.doctor import training

print(json.dumps(training.observe("tensorflow", True)))
"""


@pytest.mark.slow
def test_four_cores(forks):
    def observed(code):
        done = forks.run("-c", code)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    runtime, added_up, steps = observed(OBSERVE)
    assert "tensorflow, 4 replica(s)" in devices.judge_runtime(runtime).text
    assert sums.judge("", added_up).status is Status.OK
    assert added_up["replicas"] == 4
    assert steps["platform"] == "tpu"
    # Logical CPUs stand for the cores, and multiply float32.
    on_cpu = {**steps, "platform": "cpu"}
    judged = training.judge("", on_cpu, observed(REFERENCE))
    assert [f.text for f in judged if f.status is Status.FAILURE] == []
