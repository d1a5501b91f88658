"""The models train alike with both rules of TensorFlow's runtime, and as they were recorded."""

import json

from tpu_estimator_compat.tools.doctor import training
from tpu_estimator_compat.tools.doctor.report import Status

# The figures are of no interest, and take most of the time.
OBSERVE = """
import json
from tpu_estimator_compat.tools.doctor import training

training._speed = lambda train: {"steps_per_second": 1.0, "dispatch": 0.0, "memory": 0.0}
both = [training.observe("tensorflow", reference) for reference in (True, False)]
print(json.dumps(both))
"""


def test_first_steps(forks):
    done = forks.run("-c", OBSERVE)
    assert done.returncode == 0, done.stderr[-3000:]
    reference, answer = json.loads(done.stdout.splitlines()[-1])
    found = [*training.judge_reference(reference), *training.judge("", answer, reference)]
    judged = [f for f in found if f.check == training.CHECK]
    assert [f.text for f in judged if f.status is not Status.OK] == []
    assert len(judged) == 7
    networks = reference["networks"].values()
    assert all(any(update) for n in networks for update in n["updates"].values())
