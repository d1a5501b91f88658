import concurrent.futures
import json

import pytest
from support.ports import free_ports

from tpu_estimator_compat.tools.doctor import probing, sums
from tpu_estimator_compat.tools.doctor.report import Status

ADD_UP = """
import json
from tpu_estimator_compat.tools.doctor import models, sums

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


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["tensorflow", "jax"])
def test_sums_of_two_processes(runtime):
    """As of two doctors that are started at the same time; one alone gives up."""
    addresses = [f"localhost:{port}" for port in free_ports(2)]
    cluster = {"chief": addresses[:1], "worker": addresses[1:]}
    given = {"runtime": runtime, "seconds": 60}

    def observe(task):
        variables = {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}
        return probing.run(sums.observe, given, 120.0, variables)

    tasks = [{"type": "chief", "index": 0}, {"type": "worker", "index": 0}]
    with concurrent.futures.ThreadPoolExecutor() as threads:
        for outcome in threads.map(observe, tasks):
            assert sums.judge("", outcome.answer).status is Status.OK, outcome.error
            assert (outcome.answer["replicas"], outcome.answer["hosts"]) == (2, 2)
    given["seconds"] = 3
    alone = observe(tasks[0])
    assert alone.answer is None
    assert "Start doctor on all processes of TF_CONFIG at the same time" in alone.advice
