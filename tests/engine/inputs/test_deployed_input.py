import time

import pytest
import tensorflow as tf

from tpu_estimator_compat.engine.inputs import DeployedInput
from tpu_estimator_compat.engine.runtime import functions

from .dealing import batches, dealt


def test_waits_before_the_first_batch(strategy, monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    dealt(strategy, 1, [batches(8)], initial_infeed_sleep_secs=7)
    assert slept == [7]


@pytest.mark.parametrize(("length", "one"), [(3, True), (None, False)])
def test_replicas_on_cpus_share_an_iterator(strategy, length, one):
    """But for that of a strategy, which gives empty batches where data ends in mid-step."""
    spec = tf.TensorSpec([length], tf.float32)
    data = tf.data.Dataset.from_generator(lambda: iter([[1.0] * 3] * 3), output_signature=spec)
    deployed_input = DeployedInput([], lambda: [data], strategy(2), spec)
    iterator = iter(deployed_input)
    assert (len(functions.handles_of(iterator)) == 1) == one
    parts = strategy(2).experimental_local_results(deployed_input.next(iterator))
    assert [len(part) for part in parts] == [3, 3]
    if one:
        with pytest.raises(StopIteration):
            deployed_input.next(iterator)
    else:
        parts = strategy(2).experimental_local_results(deployed_input.next(iterator))
        assert [len(part) for part in parts] == [3, 0]
