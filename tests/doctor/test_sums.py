"""Sums over replicas: the right one passes, a wrong one does not."""

from __future__ import annotations

import json

import pytest

from tpu_estimator_compat.doctor import sums
from tpu_estimator_compat.doctor.findings import Status

ADD_UP = """
import json
from tpu_estimator_compat.doctor import models, sums

add_up = models.tf.tpu.cross_replica_sum
models.tf.tpu.cross_replica_sum = lambda value: add_up(value) / {divisor}
print(json.dumps(sums.observe("tensorflow", 60)))
"""


def test_a_wrong_sum():
    answer = {"sum": [3.0], "expected": [4.0], "replicas": 4, "hosts": 1}
    finding = sums.judge("JAX on cpu", answer)
    assert finding.status is Status.FAILURE
    assert "the sum is [3.0], and the host's is [4.0]" in finding.text
    nan = {**answer, "sum": [float("nan")], "expected": [float("nan")]}
    assert sums.judge("JAX on cpu", nan).status is Status.FAILURE


@pytest.mark.parametrize("divisor", [1, 2])
def test_what_replicas_add_up(forks, divisor):
    """Half of it is found out."""
    done = forks.run("-c", ADD_UP.format(divisor=divisor))
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert (answer["replicas"], answer["hosts"]) == (4, 1)
    assert sums.judge("", answer).status is (Status.OK if divisor == 1 else Status.FAILURE)
