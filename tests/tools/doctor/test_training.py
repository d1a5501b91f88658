"""Judgement of first steps: wrong losses, lost gradients, NaN, dropout that drops nothing."""

import copy
import json
import pathlib

import pytest

from doctor.answers import trained
from tpu_estimator_compat.tools.doctor import devices, sums, training
from tpu_estimator_compat.tools.doctor.report import Status


def failures(answer, reference=None):
    found = training.judge("JAX on cpu", answer, reference or trained())
    return [f.text for f in found if f.status is Status.FAILURE]


def test_the_same():
    assert failures(trained()) == []
    assert {f.status for f in training.judge_reference(trained())} == {Status.OK}


def test_figures_have_no_verdict():
    found = training.judge("JAX on cpu", trained(), trained())
    assert [f.status for f in found if f.check == "figures"] == [Status.FIGURE] * 2


@pytest.mark.parametrize("key", ["losses", "updates"])
def test_a_difference(key):
    answer = trained()
    values = answer["networks"]["mlp"][key]
    if key == "updates":
        values = values["mlp/kernel"]
    values[0] += 3e-4
    [text] = failures(answer)
    assert text.startswith("mlp, JAX on cpu: differs from the CPU by ")


@pytest.mark.parametrize(
    "damage", [lambda u: u.pop(), lambda u: u.append(0.0), lambda u: u.clear()]
)
def test_another_shape(damage):
    answer = trained()
    damage(answer["networks"]["convnet"]["updates"]["convnet/kernel"])
    assert len(failures(answer)) == 1


def test_a_variable_that_is_missing_and_one_that_stands_still():
    answer = trained()
    del answer["networks"]["mlp"]["updates"]["mlp/bias"]
    answer["networks"]["encoder"]["updates"]["encoder/bias"] = [0.0, 0.0]
    assert [text.partition(",")[0] for text in failures(answer)] == ["mlp", "encoder"]


def test_nan_fails_on_both_sides():
    answer = trained()
    answer["networks"]["mlp"]["updates"]["mlp/bias"][0] = float("nan")
    assert len(failures(answer)) == 1
    assert len(failures(trained(), answer)) == 1
    answer["networks"]["mlp"]["losses"][-1] = float("nan")
    assert training.judge_reference(answer)[0].status is Status.FAILURE


def test_bounds_go_by_the_platform():
    """A TPU multiplies bfloat16, and may differ by more; not by as much as a lost factor."""
    reference = trained()
    for platform, difference, fails in (
        ("gpu", 5e-3, False),
        ("gpu", 5e-2, True),
        ("tpu", 5e-2, False),
        ("tpu", 0.2, True),
        ("a new one", 5e-2, True),
    ):
        answer = copy.deepcopy(reference)
        answer["platform"] = platform
        answer["networks"]["mlp"]["updates"]["mlp/kernel"][1] *= 1 + difference
        assert bool(failures(answer)) == fails, (platform, difference)
    told = training.judge("JAX on tpu", {**reference, "platform": "tpu"}, reference)
    assert "TPUs multiply float32 matrices as bfloat16" in told[0].text


def test_a_reference_that_is_wrong():
    answer = trained()
    answer["networks"]["encoder"]["losses"][-1] *= 1.001
    assert [f.status for f in training.judge_reference(answer)].count(Status.FAILURE) == 1


@pytest.mark.parametrize(
    ("run", "key", "values", "said"),
    [
        (0, "zeros", [0.0, 0.0, 0.0], "the share of zeros"),
        (0, "zeros", [300.0, 300.0, 300.0], "the share of zeros"),
        (1, "places", [10.0, 20.0, 31.0], "the same seed draws different numbers"),
        (2, "places", [10.0, 20.0, 30.0], "different seeds draw the same numbers"),
        (0, "places", [10.0, 10.0, 30.0], "two steps draw the same numbers"),
    ],
)
def test_dropout(run, key, values, said):
    answer = trained()
    answer["dropout"]["drawn"][run][key] = values
    [text] = failures(answer)
    assert said in text


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
# The figures are of no interest, and take most of the time.
BOTH_RULES = """
import json
from tpu_estimator_compat.tools.doctor import training

training._speed = lambda train: {"steps_per_second": 1.0, "dispatch": 0.0, "memory": 0.0}
print(json.dumps([training.observe("tensorflow", reference) for reference in (True, False)]))
"""


@pytest.fixture(scope="module")
def both(forks):
    """The reference, and what TensorFlow's runtime computes by the rules of `use_tpu=True`."""
    return observed(forks, BOTH_RULES)


def observed(forks, code):
    done = forks.run("-c", code)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_first_steps(both):
    reference, answer = both
    found = [*training.judge_reference(reference), *training.judge("", answer, reference)]
    judged = [f for f in found if f.check == training.CHECK]
    assert [f.text for f in judged if f.status is not Status.OK] == []
    assert len(judged) == 7
    networks = reference["networks"].values()
    assert all(any(update) for n in networks for update in n["updates"].values())


@pytest.mark.slow
def test_four_cores(forks, both):
    runtime, added_up, steps = observed(forks, OBSERVE)
    assert "tensorflow, 4 replica(s)" in devices.judge_runtime(runtime).text
    assert sums.judge("", added_up).status is Status.OK
    assert added_up["replicas"] == 4
    assert steps["platform"] == "tpu"
    # Logical CPUs stand for the cores, and multiply float32.
    on_cpu = {**steps, "platform": "cpu"}
    judged = training.judge("", on_cpu, both[0])
    assert [f.text for f in judged if f.status is Status.FAILURE] == []
