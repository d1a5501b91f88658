import pytest

from doctor.answers import CPU, all_well
from tpu_estimator_compat.tools.doctor import devices
from tpu_estimator_compat.tools.doctor.probing import Outcome
from tpu_estimator_compat.tools.doctor.report import Status

TPU = {"platform": "tpu", "kind": "TPU v5 lite", "used": 2e9, "limit": 16e9}


def sees(platform="cpu", chips=0, gpus=0, log="", seen=CPU):
    answer = {"chips": chips, "gpus": gpus, "platform": platform, "devices": [seen] * 2}
    return Outcome(answer, log=log)


def attached(**outcomes):
    return [(f.status, f.text, f.advice) for f in devices.judge_attached(outcomes)]


def test_devices_and_their_memory():
    finding = devices.judge("jax", sees("tpu", 2, seen=TPU))
    assert finding.status is Status.OK
    assert finding.text == "JAX sees 2 x tpu (TPU v5 lite), 2.0 of 16.0 GB in use"
    assert devices.judge("tensorflow", sees()).text.endswith("2 x cpu (CPU), memory unknown")


@pytest.mark.parametrize("failed", [True, False])
def test_a_device_that_another_process_holds(failed):
    """JAX may say so and go on with the CPU."""
    log = "ABORTED: The TPU is already in use by process with pid 7."
    outcome = sees(chips=4, log=log)
    if failed:
        outcome = Outcome(None, "ended with exit status 1", "sudo lsof -w", log)
    finding = devices.judge("jax", outcome)
    assert finding.status is Status.FAILURE
    assert "sudo lsof -w" in finding.advice
    assert attached(tensorflow=sees(chips=4), jax=outcome) == [] or failed


def test_nothing_is_attached():
    assert attached(tensorflow=sees(), jax=sees()) == []


def test_a_tpu_that_nobody_uses():
    [(status, text, advice)] = attached(
        tensorflow=sees(chips=4), jax=sees(chips=4, log="\nUnable to initialize backend 'tpu'\n")
    )
    assert status is Status.FAILURE
    assert text.startswith("4 TPU chip(s) attached, not used by TensorFlow and JAX.")
    assert "Unable to initialize backend" in text
    assert "pip install 'jax[tpu]>=0.10.2,<=0.12.0.1'" in advice
    [(status, _, _)] = attached(tensorflow=sees(chips=4))
    assert status is Status.FAILURE


def test_a_tpu_that_one_uses():
    assert attached(tensorflow=sees(chips=4), jax=sees("tpu", 4)) == []
    [(status, text, _)] = attached(tensorflow=sees("tpu", 4), jax=sees(chips=4))
    assert status is Status.WARNING
    assert "not used by JAX" in text


def test_a_gpu_that_one_uses():
    [(status, text, advice)] = attached(tensorflow=sees(gpus=1), jax=sees("gpu", gpus=1))
    assert status is Status.WARNING
    assert text == "1 NVIDIA GPU(s) attached, not used by TensorFlow."
    assert "tensorflow[and-cuda]" in advice


def test_the_runtime():
    answer = all_well()[devices.observe_runtime]
    assert devices.judge_runtime(answer).status is Status.OK
    by_jax = {**answer, "taken": "jax", "chips": 4, "replicas": 4}
    assert devices.judge_runtime(by_jax).status is Status.OK
    finding = devices.judge_runtime({**by_jax, "asked": "tensorflow"})
    assert finding.status is Status.WARNING
    assert "TPU_ESTIMATOR_COMPAT_RUNTIME=tensorflow leaves the TPU alone" in finding.text


def test_what_probes_see_here():
    """In this process, whose CPU is split; it has no other devices."""
    found = devices.observe("tensorflow")
    assert found["devices"] == [CPU]
    assert (found["platform"], found["hosts"]) == ("cpu", 1)
    runtime = devices.observe_runtime()
    assert (runtime["taken"], runtime["replicas"]) == ("tensorflow", 4)


def test_a_device_that_computes_nonsense():
    with pytest.raises(RuntimeError, match=r"cpu:0 says that 1 \+ 1 is 3"):
        devices._check_sum("cpu:0", 3.0)
